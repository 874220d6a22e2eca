"""What a downstream task is, and the cache that every task builds through."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ceteris.console import say
from ceteris.errors import UserError
from ceteris.files import whole_folder, write_json
from ceteris.hashing import digest

if TYPE_CHECKING:
    import pyarrow as pa

Examples = dict[str, list["Example"]]
METRICS = ("accuracy", "matthews", "f1", "pearson", "spearman")
FORMAT = 1  # of the cached folder


class Example(NamedTuple):
    """One labelled text or pair of texts; `label` is a class number, or a value for regression."""

    text: str
    pair: str | None
    label: int | float


class Task(Protocol):
    """A downstream task. Composed from `conf/task/<name>.yaml`; the head of the model is chosen by `head`."""

    name: str
    head: str
    classes: tuple[str, ...]
    metrics: tuple[str, ...]  # the first is the main one
    semantics: int  # raised when the same sources give other examples

    def examples(self, cache: Path) -> Examples:
        """`train`, `validation` and any further evaluation sets, in a fixed order."""

    def fingerprint(self, cache: Path) -> str:
        """The hash of all texts and labels, 16 hex digits."""


class CachedTask(ABC):
    """A task that is built once per `source` and then read from `cache/tasks/`.

    Raises UserError for an unknown metric, for a set that is empty, and for training examples of a single class.
    """

    head = "classification"
    semantics = 1

    def __init__(
        self,
        name: str,
        classes: Sequence[str],
        metrics: Sequence[str] = ("accuracy",),
        max_train: int | None = None,
        max_validation: int | None = None,
    ) -> None:
        self.name = name
        self.classes = tuple(classes)
        self.metrics = tuple(metrics)
        self.max_train, self.max_validation = max_train, max_validation
        self._check()

    def _check(self) -> None:
        key = f"tasks.{self.name}"
        unknown = [metric for metric in self.metrics if metric not in METRICS]
        if unknown or not self.metrics:
            raise UserError(f"{key}.metrics: {unknown or 'empty'}", f"choose from {', '.join(METRICS)}")
        if len(set(self.classes)) != len(self.classes) or len(self.classes) < 2:
            raise UserError(f"{key}.classes: {list(self.classes)}", "name at least two different classes")
        for limit, value in (("max_train", self.max_train), ("max_validation", self.max_validation)):
            if value is not None and value < len(self.classes):
                raise UserError(
                    f"{key}.{limit}={value}", f"allow at least {len(self.classes)} examples, or null for all"
                )

    @abstractmethod
    def source(self) -> Any:
        """Plain data that tells cheaply whether the built examples still hold: settings, file sizes and times."""

    @abstractmethod
    def build(self, cache: Path) -> Examples:
        """The examples from their source, limits applied."""

    def examples(self, cache: Path) -> Examples:
        """See `Task.examples`."""
        folder = self._folder(cache)
        return {split: read_examples(folder / f"{split}.parquet") for split in self.summary(cache)["examples"]}

    def fingerprint(self, cache: Path) -> str:
        """See `Task.fingerprint`."""
        return str(self.summary(cache)["fingerprint"])

    def summary(self, cache: Path) -> dict[str, Any]:
        """`fingerprint`, `examples` and `labels` (counts by set), `leaked` (evaluation examples that are in train)."""
        found: dict[str, Any] = json.loads((self._folder(cache) / "summary.json").read_text())
        return found

    def _folder(self, cache: Path) -> Path:
        folder = cache / "tasks" / f"{self.name}-{digest([FORMAT, self.semantics, self.source()])}"
        if not folder.is_dir():
            self._store(self.build(cache), folder)
        return folder

    def _store(self, examples: Examples, folder: Path) -> None:
        check_examples(examples, f"tasks.{self.name}")
        leaked = leakage(examples)
        with whole_folder(folder) as work:
            for split, rows in examples.items():
                write_examples(work / f"{split}.parquet", rows)
            summary = {
                "fingerprint": fingerprint(examples, self.classes),
                "examples": {split: len(rows) for split, rows in examples.items()},
                "labels": {split: _label_counts(rows, self.classes) for split, rows in examples.items()},
                "leaked": leaked,
            }
            write_json(work / "summary.json", summary)
        for split, count in leaked.items():
            if count:
                say(f"task {self.name}: {count} of {len(examples[split])} {split} texts are also in train")


def check_examples(examples: Examples, key: str) -> None:
    """Raise UserError where a set is empty or where training examples show a single label."""
    for split, rows in examples.items():
        if not rows:
            raise UserError(f"{key}: no labelled examples in {split}", "give a split with labels")
    if len({row.label for row in examples["train"]}) < 2:
        raise UserError(f"{key}: all training examples have the same label", "give a train split with every class")


def _label_counts(rows: Sequence[Example], classes: Sequence[str]) -> dict[str, int]:
    counts = Counter(row.label for row in rows)
    return {name: counts[label] for label, name in enumerate(classes)}


def normalised(text: str) -> str:
    """The text in one case with single spaces: what counts as the same text."""
    return " ".join(text.lower().split())


def leakage(examples: Examples) -> dict[str, int]:
    """For each evaluation set: examples whose normalised text (and pair) is in train."""

    def key(row: Example) -> tuple[str, str | None]:
        return normalised(row.text), None if row.pair is None else normalised(row.pair)

    seen = {key(row) for row in examples["train"]}
    return {split: sum(key(row) in seen for row in rows) for split, rows in examples.items() if split != "train"}


def limited(rows: list[Example], limit: int | None) -> list[Example]:
    """At most `limit` rows, those of the lowest hash, in their order: a new row displaces at most one other."""
    if limit is None or len(rows) <= limit:
        return rows
    chosen = sorted(range(len(rows)), key=lambda i: (_row_hash(rows[i]), i))[:limit]
    return [rows[i] for i in sorted(chosen)]


def hashed_share(text: str) -> float:
    """A number in [0, 1) that depends on the text alone: who is held out does not depend on who else is there."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") / 2**64


def _row_hash(row: Example) -> bytes:
    return blake2b(f"{row.text}\0{row.pair}\0{row.label}".encode("utf-8", "surrogatepass"), digest_size=8).digest()


def fingerprint(examples: Examples, classes: Sequence[str]) -> str:
    """A hash of the class names and of every example in order, 16 hex digits."""
    hashed = blake2b(digest(list(classes)).encode(), digest_size=8)
    for split in sorted(examples):
        hashed.update(f"\0{split}\0{len(examples[split])}\0".encode())
        for row in examples[split]:
            hashed.update(_row_hash(row))
    return hashed.hexdigest()


def write_examples(path: Path, rows: Sequence[Example]) -> None:
    """A parquet file with the columns text, pair and label."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {
        "text": pa.array([row.text for row in rows], pa.string()),
        "pair": pa.array([row.pair for row in rows], pa.string()),
        "label": pa.array([row.label for row in rows]),
    }
    pq.write_table(pa.table(columns), path, compression="zstd")


def read_examples(path: Path) -> list[Example]:
    """The rows that `write_examples` wrote."""
    import pyarrow.parquet as pq

    table: pa.Table = pq.ParquetFile(path).read()  # read_table imports pandas
    return [Example(*row) for row in zip(*(table.column(name).to_pylist() for name in Example._fields), strict=True)]
