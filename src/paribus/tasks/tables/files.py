"""Tables from local files of several formats, or from the Hugging Face hub."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.core.errors import UserError
from paribus.core.text_files import decode, split_lines
from paribus.tasks.tables.conll import looks_like_conll, read_conll
from paribus.tasks.tables.delimited import read_delimited
from paribus.tasks.tables.json_files import read_json, read_json_lines

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = ("parquet", "jsonl", "csv", "tsv", "conll", "json", "label", "txt")
LABELED_LINES = ("label", "txt")  # each line is a label and a text
READING = 2  # to increase if the same file gives other rows


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
    """Path, size and time of a file, which change if its content does, and how it is read."""
    stat = file.stat()
    return [str(file.resolve()), stat.st_size, stat.st_mtime_ns, READING]


def read_files(
    files: Sequence[Path],
    strings: Sequence[str],
    key: str,
    wanted: Sequence[str] = (),
    numbered: bool = False,
    classes: Sequence[str] = (),
) -> pa.Table:
    """The rows of all files.

    Args:
        strings: columns that are always text in CSV and TSV files.
        key: the config key of the task, for messages.
        wanted: names of the columns that are asked for; see `read_conll` and `find_delimiter`.
        numbered: columns are named by their number, from 1: CSV and TSV files then have no header.
        classes: those of the task, by which `read_conll` finds the column of the tags.

    Raises UserError for a file that cannot be read.
    """
    import pyarrow as pa

    try:
        tables = [_read_file(file, strings, _place(key), wanted, numbered, classes) for file in files]
        table = pa.concat_tables(tables, promote_options="default")
        if len(set(table.column_names)) < len(table.column_names):  # names that are not UTF-8 raise here
            raise KeyError("a column exists twice")
        table.validate(full=True)  # damaged bytes of a text
        return table
    except UnicodeDecodeError as error:
        cause = f"{_place(key)}: {files[0]} is not {error.encoding.upper()} ({_first_line(error)})"
        raise UserError(cause, "convert it, for example with iconv -f latin1 -t utf-8") from error
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
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


def _read_file(
    file: Path, strings: Sequence[str], place: str, wanted: Sequence[str], numbered: bool, classes: Sequence[str]
) -> pa.Table:
    suffix = file.suffix[1:]
    if numbered and suffix not in ("csv", "tsv", "conll"):
        raise UserError(
            f"{place}: the columns of {file} have names", "name them; numbers are for .csv, .tsv and .conll"
        )
    if suffix == "parquet":
        import pyarrow.parquet as pq

        return pq.ParquetFile(file).read()  # read_table imports pandas
    text, where = decode(file.read_bytes()), f"{place}: {file}"
    if suffix == "jsonl":
        return read_json_lines(text)
    if suffix == "json":
        return read_json(text)
    if suffix == "conll":
        return read_conll(text, wanted, where, classes)
    if suffix in LABELED_LINES:
        if looks_like_conll(text):
            cause = f"{where} has a word and its tags in each line (CoNLL), not a label and a text"
            names = shlex.join([str(file), str(file.with_suffix(".conll"))])
            raise UserError(cause, f"rename it: mv {names}")
        return _read_labeled_lines(text)
    return read_delimited(text, strings, wanted, numbered, suffix == "tsv", where)


def _read_labeled_lines(text: str) -> pa.Table:
    """A label and a text in each line, as in TREC: `LABEL text`, or `LABEL:fine text`, whose whole label is `fine`."""
    import pyarrow as pa

    rows = []
    for number, line in enumerate(split_lines(text), 1):
        if line.strip():
            label, _, rest = line.strip(" \t").replace("\t", " ", 1).partition(" ")
            coarse, colon, _ = label.partition(":")
            if not (coarse and rest.strip()):
                raise ValueError(f"line {number} is not a label, a space and a text")
            rows.append({"label": coarse, **({"fine": label} if colon else {}), "text": rest})
    if len({len(row) for row in rows}) > 1:
        raise ValueError("some lines begin with LABEL:fine, and others with a word without a colon")
    return pa.table({name: [row[name] for row in rows] for name in (rows[0] if rows else ("label", "text"))})


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
