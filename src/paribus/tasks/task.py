"""The base class of downstream tasks, and the cache that every task uses."""

from __future__ import annotations

import copy
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.core.checksums import digest, is_stored
from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.files import whole_folder, write_json
from paribus.tasks.examples import Examples, count_leaks, hash_examples, limit_rows, read_examples, write_examples
from paribus.tasks.prompts import Fields

if TYPE_CHECKING:
    from paribus.models.spec import ModelSpec
    from paribus.tasks.types.base import TaskType

FORMAT = 2  # of the cached folder


class Task(ABC):
    """A downstream task, composed from `conf/task/<name>.yaml`. It is built once per `source` and then read from
    `cache/tasks/`.

    Attributes:
        task_type: what a model does with the examples.
        fields: the names that precede the texts for a text-to-text model.
        key: the config key of the task, for messages.
        semantics: a version number to increase when the same source gives different examples, or the same answers
            different scores.

    Raises UserError for bad settings, for an empty set, and for training examples that a model cannot learn from.
    """

    semantics = 1

    def __init__(
        self, name: str, task_type: TaskType, max_train: int | None = None, max_validation: int | None = None
    ) -> None:
        self.name, self.task_type, self.key = name, task_type, f"tasks.{name}"
        self.fields = Fields(name, "text", "pair")
        self.limits = {"train": max_train, "validation": max_validation}
        self.examples_limit: int | None = None  # examples of each set, whatever its limit; see `limited`
        self.task_type.check(self.key)
        least = max(1, len(task_type.classes))
        for split, limit in self.limits.items():
            if limit is not None and limit < least:
                raise UserError(
                    f"{self.key}.max_{split}={limit} is out of range",
                    f"allow at least {least} examples, or null for all",
                )

    def limited(self, most: int | None) -> Task:
        """The task with at most this many examples of each set, chosen by hash; None: all."""
        if most == self.examples_limit:
            return self
        task = copy.copy(self)
        task.examples_limit = most
        return task

    @property
    def further_sets(self) -> list[str]:
        """Evaluation sets besides `validation`."""
        return []

    @abstractmethod
    def source(self) -> Any:
        """Plain data that shows cheaply whether the cached examples are still valid: settings, file sizes, times."""

    @abstractmethod
    def build(self, cache: Path) -> Examples:
        """The examples from their source, limits applied."""

    def examples(self, cache: Path) -> Examples:
        """`train`, `validation` and any further evaluation sets, in a fixed order."""
        folder = self._folder(cache)
        kind = self.task_type.example_class
        return {split: read_examples(folder / f"{split}.parquet", kind) for split in self.summary(cache)["examples"]}

    def data_hash(self, cache: Path) -> str:
        """The hash of all texts and labels, 16 hex digits."""
        return str(self.summary(cache)["data_hash"])

    def predict_by_rules(self, examples: Sequence[Any]) -> Mapping[str, Any]:
        """{name: predictions} of the task's own baselines that learn nothing, such as regular expressions."""
        return {}

    def type_for(self, model: ModelSpec) -> TaskType:
        """The task type for a model: with a head on an encoder, or in words for a text-to-text model.

        Raises UserError if the model cannot do the task.
        """
        if model.writes_text:
            return self.task_type.verbalize(self.fields, model.single)
        return self.task_type.fit(model, self.key)

    def summary(self, cache: Path) -> dict[str, Any]:
        """`data_hash`, `examples` and `labels` (counts by set), `leaked` (evaluation examples that are in train)."""
        summary: dict[str, Any] = json.loads((self._folder(cache) / "summary.json").read_text())
        return summary

    def _folder(self, cache: Path) -> Path:
        """Where the examples are stored, after they are built if they are not."""
        limit = [] if self.examples_limit is None else [self.examples_limit]
        folder = cache / "tasks" / f"{self.name}-{digest([FORMAT, self.semantics, self.source(), *limit])}"
        if is_stored(folder):
            return folder
        if self.examples_limit is None:
            examples = self.build(cache)
        else:
            every = self.limited(None).examples(cache)
            examples = {split: limit_rows(rows, self.examples_limit, b"limited") for split, rows in every.items()}
        for split, rows in examples.items():
            if not rows:
                raise UserError(f"{self.key}: no labeled examples in {split}", "use a split that has labels")
        self.task_type.check_examples(examples["train"], self.key)
        leaked = count_leaks(examples)
        with whole_folder(folder) as work:
            for split, rows in examples.items():
                write_examples(work / f"{split}.parquet", rows)
            summary = {
                "data_hash": hash_examples(examples, self.task_type.classes),
                "examples": {split: len(rows) for split, rows in examples.items()},
                "labels": {split: self.task_type.count_labels(rows) for split, rows in examples.items()},
                "leaked": leaked,
            }
            write_json(work / "summary.json", summary)
        for split, count in leaked.items():
            if count:
                say(f"task {self.name}: {count} of {len(examples[split])} {split} texts are also in train")
        return folder
