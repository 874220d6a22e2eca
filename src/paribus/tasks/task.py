"""What a downstream task is, and the cache that every task builds through."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.files import whole_folder, write_json
from paribus.core.hashing import digest
from paribus.tasks.example import Examples, fingerprint, leakage, read_examples, write_examples
from paribus.tasks.verbalize import Fields

if TYPE_CHECKING:
    from paribus.tasks.types.base import TaskType

FORMAT = 1  # of the cached folder


class Task(Protocol):
    """A downstream task. Composed from `conf/task/<name>.yaml`; what a model does with it is told by its form."""

    name: str
    task_type: TaskType
    fields: Fields  # what its texts are called where they are announced
    semantics: int  # raised when the same sources give other examples

    def examples(self, cache: Path) -> Examples:
        """`train`, `validation` and any further evaluation sets, in a fixed order."""

    def fingerprint(self, cache: Path) -> str:
        """The hash of all texts and labels, 16 hex digits."""

    def rules(self, examples: Sequence[Any]) -> Mapping[str, Any]:
        """{name: predictions} of the task's own baselines that learn nothing, such as regular expressions."""


class CachedTask(ABC):
    """A task that is built once per `source` and then read from `cache/tasks/`.

    Raises UserError for settings that make no task, for a set that is empty, and for training examples from which
    nothing can be learned.
    """

    semantics = 1

    def __init__(
        self, name: str, task_type: TaskType, max_train: int | None = None, max_validation: int | None = None
    ) -> None:
        self.name, self.task_type, self.key = name, task_type, f"tasks.{name}"
        self.fields = Fields(name, "text", "pair")
        self.max_train, self.max_validation = max_train, max_validation
        self._check()

    def _check(self) -> None:
        self.task_type.check(self.key)
        least = max(1, len(self.task_type.classes))
        for limit, value in (("max_train", self.max_train), ("max_validation", self.max_validation)):
            if value is not None and value < least:
                raise UserError(f"{self.key}.{limit}={value}", f"allow at least {least} examples, or null for all")

    @abstractmethod
    def source(self) -> Any:
        """Plain data that tells cheaply whether the built examples still hold: settings, file sizes and times."""

    @abstractmethod
    def build(self, cache: Path) -> Examples:
        """The examples from their source, limits applied."""

    def examples(self, cache: Path) -> Examples:
        """See `Task.examples`."""
        folder = self._folder(cache)
        kind = self.task_type.example
        return {split: read_examples(folder / f"{split}.parquet", kind) for split in self.summary(cache)["examples"]}

    def fingerprint(self, cache: Path) -> str:
        """See `Task.fingerprint`."""
        return str(self.summary(cache)["fingerprint"])

    def rules(self, examples: Sequence[Any]) -> Mapping[str, Any]:
        """See `Task.rules`."""
        return {}

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
        for split, rows in examples.items():
            if not rows:
                raise UserError(f"{self.key}: no labeled examples in {split}", "give a split with labels")
        self.task_type.check_examples(examples["train"], self.key)
        leaked = leakage(examples)
        with whole_folder(folder) as work:
            for split, rows in examples.items():
                write_examples(work / f"{split}.parquet", rows)
            summary = {
                "fingerprint": fingerprint(examples, self.task_type.classes),
                "examples": {split: len(rows) for split, rows in examples.items()},
                "labels": {split: self.task_type.counts(rows) for split, rows in examples.items()},
                "leaked": leaked,
            }
            write_json(work / "summary.json", summary)
        for split, count in leaked.items():
            if count:
                say(f"task {self.name}: {count} of {len(examples[split])} {split} texts are also in train")
