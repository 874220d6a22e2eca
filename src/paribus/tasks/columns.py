"""Tasks whose examples are rows of a table: a set of the Hugging Face hub or a local folder of the same layout."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from paribus.core.errors import UserError
from paribus.tasks.example import Examples, limited
from paribus.tasks.task import CachedTask
from paribus.tasks.types.base import TaskType
from paribus.tasks.verbalize import Fields

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = ("parquet", "jsonl", "csv", "tsv", "conll")


class TableTask(CachedTask):
    """A task from the columns of a table; subclasses read its rows.

    Args:
        columns: the source's column for each of ours: those `needed`, and of those `allowed` any.
        hub: name of the set on the hub; read only where `path` is null.
        config: name of the configuration on the hub; also a sub-folder of `path`.
        path: a folder with `<split>.parquet`, `.jsonl`, `.csv`, `.tsv` or `.conll` (or parts, `<split>-*.parquet`).
        splits: the split of the source behind `train`, `validation` and any further evaluation set.
    """

    needed: ClassVar[tuple[str, ...]] = ("text", "label")
    allowed: ClassVar[tuple[str, ...]] = ()
    strings: ClassVar[tuple[str, ...]] = ("text", "pair")  # of a CSV, whatever they look like

    def __init__(
        self,
        name: str,
        task_type: TaskType,
        columns: Mapping[str, str],
        hub: str | None = None,
        config: str | None = None,
        revision: str | None = None,
        path: str | None = None,
        splits: Mapping[str, str] | None = None,
        max_train: int | None = None,
        max_validation: int | None = None,
    ) -> None:
        super().__init__(name, task_type, max_train, max_validation)
        self.columns = dict(columns)
        self.hub, self.config, self.revision, self.path = hub, config, revision, path
        self.splits = dict(splits or {"train": "train", "validation": "validation"})
        self._check_settings()
        self.fields = Fields(name, self.columns.get("text", "text"), self.columns.get("pair"))

    def _check_settings(self) -> None:
        if not set(self.needed) <= set(self.columns) <= {*self.needed, *self.allowed}:
            optional = f", and of {', '.join(self.allowed)} if any" if self.allowed else ""
            raise UserError(
                f"{self.key}.columns: {self.columns}", f"name the columns of {', '.join(self.needed)}{optional}"
            )
        if not {"train", "validation"} <= set(self.splits):
            raise UserError(f"{self.key}.splits: {self.splits}", "name the splits behind train and validation")
        if not (self.hub or self.path):
            raise UserError(f"{self.key}.path is not set", f"{self.key}.path=FOLDER, or {self.key}.hub=NAME")

    @abstractmethod
    def _rows(self, table: pa.Table, split: str) -> list[Any]:
        """The labeled examples of a table. Raises UserError for a row that is none."""

    def _meaning(self) -> Any:
        """What besides columns, splits and limits decides which examples are made of the source."""
        return list(self.task_type.classes)

    def source(self) -> Any:
        """See `CachedTask.source`; for a set of the hub its name and revision."""
        settings = [self.columns, self._meaning(), self.splits, self.max_train, self.max_validation]
        if self.path is None:
            return [settings, self.hub, self.config, self.revision]
        return [settings, [_identity(file) for split in self.splits.values() for file in self._files(split)]]

    def build(self, cache: Path) -> Examples:
        """See `CachedTask.build`."""
        return {ours: self._examples(ours, theirs) for ours, theirs in self.splits.items()}

    def _examples(self, ours: str, theirs: str) -> list[Any]:
        table = self._local(theirs) if self.path is not None else self._hub(theirs)
        missing = [column for column in self.columns.values() if column not in table.column_names]
        if missing:
            where = f"{self.path or self.hub} ({theirs})"
            raise UserError(
                f"{self.key}.columns: {where} has no column {', '.join(map(repr, missing))}",
                f"choose from {', '.join(table.column_names)}",
            )
        return limited(self._rows(table, theirs), self.max_train if ours == "train" else self.max_validation)

    def _check_text(self, text: object, column: str, row: int, split: str) -> None:
        if not isinstance(text, str) or not text.strip():
            what = "no text" if isinstance(text, str) or text is None else f"{type(text).__name__}, not text,"
            raise UserError(
                f"{self.key}: row {row} of {split} has {what} in column {self.columns[column]!r}",
                f"mend the row or choose another column with {self.key}.columns.{column}",
            )

    def _numbers(self, table: pa.Table, column: str) -> dict[Any, int]:
        """Class number by the label found in the table: a name, or a number in the order of the table's own names."""
        own = _class_names(table, self.columns[column]) or self.task_type.classes
        if set(own) != set(self.task_type.classes):
            raise UserError(f"{self.key}.classes: {list(self.task_type.classes)}", f"the data has {', '.join(own)}")
        names = {name: number for number, name in enumerate(self.task_type.classes)}
        return {**names, **{number: names[name] for number, name in enumerate(own)}}

    def _files(self, split: str) -> list[Path]:
        """The files of one split in a local folder."""
        folder = Path(str(self.path)).expanduser()
        if not folder.is_dir():
            raise UserError(
                f"{self.key}.path: no folder {folder}", "give a folder with train.parquet and validation.parquet"
            )
        places = [
            folder,
            folder / "data",
            *([folder / self.config, folder / "data" / self.config] if self.config else []),
        ]
        for place in places:
            for suffix in SUFFIXES:
                files = sorted([*place.glob(f"{split}.{suffix}"), *place.glob(f"{split}-*.{suffix}")])
                if files:
                    return files
        there = ", ".join(sorted(file.name for file in folder.iterdir())[:8]) or "nothing"
        raise UserError(
            f"{self.key}.path: {folder} has no {split}.parquet (.jsonl, .csv, .tsv), only {there}",
            f"add the file or name another split with {self.key}.splits",
        )

    def _local(self, split: str) -> pa.Table:
        import pyarrow as pa

        files = self._files(split)
        try:
            texts = [column for ours, column in self.columns.items() if ours in self.strings]
            return pa.concat_tables([_read(file, texts) for file in files], promote_options="default")
        except (pa.ArrowException, OSError) as error:
            kind = files[0].suffix[1:]
            raise UserError(
                f"{self.key}.path: {files[0]} is no readable {kind} ({_line(error)})", "replace it"
            ) from error

    def _hub(self, split: str) -> pa.Table:
        from datasets import load_dataset

        try:
            data = load_dataset(str(self.hub), self.config, split=split, revision=self.revision)
        except Exception as error:  # the hub client raises errors of many libraries
            name = "/".join(filter(None, (self.hub, self.config)))
            raise UserError(
                f"{self.key}.hub: {name} ({split}) cannot be loaded ({type(error).__name__}: {_line(error)})",
                f"check name and network, or give a local folder with {self.key}.path=FOLDER",
            ) from error
        return data.with_format("arrow")[:].replace_schema_metadata(data.features.arrow_schema.metadata)


def _read(file: Path, texts: Sequence[str]) -> pa.Table:
    """One file as a table, format by suffix; the columns `texts` of a CSV are strings, whatever they look like."""
    if file.suffix == ".parquet":
        import pyarrow.parquet as pq

        return pq.ParquetFile(file).read()
    if file.suffix == ".jsonl":
        from pyarrow import json as pj

        return pj.read_json(file, pj.ReadOptions(block_size=16 << 20))
    if file.suffix == ".conll":
        return _read_conll(file)
    import pyarrow as pa
    from pyarrow import csv

    plain = csv.ParseOptions(delimiter="\t", quote_char=False)
    types = csv.ConvertOptions(column_types=dict.fromkeys(texts, pa.string()))
    options = plain if file.suffix == ".tsv" else csv.ParseOptions(newlines_in_values=True)
    return csv.read_csv(file, parse_options=options, convert_options=types)


def _read_conll(file: Path) -> pa.Table:
    """One word a line: its first field is the word, its last one the tag; blank lines part sentences."""
    import pyarrow as pa

    sentences: list[tuple[list[str], list[str]]] = [([], [])]
    for line in file.read_text(encoding="utf-8").splitlines():
        fields = line.split("\t") if "\t" in line else line.split()
        if not line.strip():
            sentences.append(([], []))
        elif fields[0] != "-DOCSTART-":
            sentences[-1][0].append(fields[0])
            sentences[-1][1].append(fields[-1])
    kept = [sentence for sentence in sentences if sentence[0]]
    return pa.table({"words": [words for words, _ in kept], "tags": [tags for _, tags in kept]})


def _class_names(table: pa.Table, column: str) -> list[str] | None:
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


def _identity(file: Path) -> list[Any]:
    stat = file.stat()
    return [str(file.resolve()), stat.st_size, stat.st_mtime_ns]


def _line(error: BaseException) -> str:
    """The first line of an error's text, at most 160 characters."""
    return (str(error).strip().splitlines() or [""])[0][:160]
