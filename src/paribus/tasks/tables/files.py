"""Tables from local files of several formats, or from the Hugging Face hub."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.core.checksums import parse
from paribus.core.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = ("parquet", "jsonl", "csv", "tsv", "conll")


def find_files(folder: Path, config: str | None, split: str, key: str) -> list[Path]:
    """The files of a split in a local folder: in the folder itself, in `data/`, or in a sub-folder named `config`.

    Raises UserError, under the config key of the task, if there are none.
    """
    if not folder.is_dir():
        raise UserError(f"{_place(key)}: no folder {folder}", "give a folder with train.parquet and validation.parquet")
    places = [folder, folder / "data", *([folder / config, folder / "data" / config] if config else [])]
    for place in places:
        for suffix in SUFFIXES:
            if files := sorted([*place.glob(f"{split}.{suffix}"), *place.glob(f"{split}-*.{suffix}")]):
                return files
    there = ", ".join(sorted(file.name for file in folder.iterdir())[:8]) or "nothing"
    raise UserError(
        f"{_place(key)}: {folder} has no {split}.parquet (.jsonl, .csv, .tsv), only {there}",
        f"add the file or name another split with {key}.splits",
    )


def _place(key: str) -> str:
    """What a message calls the path: an option has it as its value, a task under a key."""
    return key if key.startswith("--") else f"{key}.path"


def identify_file(file: Path) -> list[Any]:
    """Path, size and time of a file, which change if its content does."""
    stat = file.stat()
    return [str(file.resolve()), stat.st_size, stat.st_mtime_ns]


def read_files(files: Sequence[Path], strings: Sequence[str], key: str) -> pa.Table:
    """The rows of all files; in CSV and TSV files the columns `strings` are always text.

    Raises UserError, under the config key of the task, for a file that cannot be read.
    """
    import pyarrow as pa

    try:
        table = pa.concat_tables([_read_file(file, strings) for file in files], promote_options="default")
        if len(set(table.column_names)) < len(table.column_names):  # names that are not UTF-8 raise here
            raise KeyError("a column exists twice")
        return table
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError) as error:
        kind = files[0].suffix[1:]
        raise UserError(
            f"{_place(key)}: {files[0]} is not a readable {kind} file ({_first_line(error)})", "replace it"
        ) from error


def load_hub(name: str, config: str | None, revision: str | None, split: str, key: str) -> pa.Table:
    """A split of a data set of the hub, by the `datasets` library.

    Raises UserError, under the config key of the task, if it cannot be loaded.
    """
    from datasets import load_dataset

    try:
        data = load_dataset(name, config, split=split, revision=revision)
    except Exception as error:  # the hub client raises errors of many libraries
        whole = "/".join(filter(None, (name, config)))
        raise UserError(
            f"{key}.hub: {whole} ({split}) cannot be loaded ({type(error).__name__}: {_first_line(error)})",
            f"check the name and the network, or give a local folder with {key}.path=FOLDER",
        ) from error
    return data.with_format("arrow")[:].replace_schema_metadata(data.features.arrow_schema.metadata)


def _read_file(file: Path, strings: Sequence[str]) -> pa.Table:
    if file.suffix == ".parquet":
        import pyarrow.parquet as pq

        return pq.ParquetFile(file).read()  # read_table imports pandas
    if file.suffix == ".jsonl":
        return _read_json_lines(file)
    if file.suffix == ".conll":
        return _read_conll(file)
    import pyarrow as pa
    from pyarrow import csv

    plain = csv.ParseOptions(delimiter="\t", quote_char=False)
    types = csv.ConvertOptions(column_types=dict.fromkeys(strings, pa.string()))
    options = plain if file.suffix == ".tsv" else csv.ParseOptions(newlines_in_values=True)
    return csv.read_csv(file, parse_options=options, convert_options=types)


def _read_json_lines(file: Path) -> pa.Table:
    """One object per line; Arrow's own reader crashes on some lines that are not objects."""
    import pyarrow as pa

    rows: list[dict[str, Any]] = []
    for number, line in enumerate(file.read_text(encoding="utf-8-sig").split("\n"), 1):
        if line.strip():
            try:
                rows.append(row := parse(line))
            except ValueError as error:
                raise ValueError(f"line {number} is not JSON: {str(error).partition(':')[0]}") from error
            if not isinstance(row, dict):
                raise ValueError(f"line {number} is not a JSON object")
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def _read_conll(file: Path) -> pa.Table:
    """One word per line: its first field is the word, its last one the tag; blank lines separate sentences."""
    import pyarrow as pa

    sentences: list[tuple[list[str], list[str]]] = [([], [])]
    for line in file.read_text(encoding="utf-8-sig").split("\n"):
        fields = line.split("\t") if "\t" in line else line.split()
        if not line.strip():
            sentences.append(([], []))
        elif fields[0] != "-DOCSTART-":
            sentences[-1][0].append(fields[0])
            sentences[-1][1].append(fields[-1])
    kept = [sentence for sentence in sentences if sentence[0]]
    return pa.table({"words": [words for words, _ in kept], "tags": [tags for _, tags in kept]})


def class_names(table: pa.Table, column: str) -> list[str] | None:
    """The names that the `datasets` library keeps in the schema for a column of class numbers."""
    raw = (table.schema.metadata or {}).get(b"huggingface")
    if raw is None:
        return None
    feature = json.loads(raw).get("info", {}).get("features", {}).get(column, {})
    if isinstance(feature, list) and feature:  # a list of class numbers, as older versions write it
        feature = feature[0]
    if isinstance(feature, dict):
        feature = feature.get("feature", feature)  # and as newer ones do
    names: list[str] | None = feature.get("names") if isinstance(feature, dict) else None
    return names


def _first_line(error: BaseException) -> str:
    """The first line of an error's text, at most 160 characters."""
    return (str(error).strip().splitlines() or [""])[0][:160]
