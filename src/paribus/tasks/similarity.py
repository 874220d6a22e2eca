"""A task that is trained on one table and scored on another.   Sentence-BERT (arXiv 1908.10084), section 6"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paribus.core.errors import UserError
from paribus.tasks.examples import Examples
from paribus.tasks.tables import LabelTable, ValueTable
from paribus.tasks.task import Task
from paribus.tasks.types.similarity import Similarity


class SimilarityTables(Task):
    """Training pairs with classes from one table, evaluation pairs with values from another.

    Args:
        learned: its training set is that of the task.
        scored: its evaluation sets are those of the task.

    Raises UserError for tables of single texts.
    """

    def __init__(
        self, name: str, learned: LabelTable, scored: ValueTable, metrics: Sequence[str] = ("spearman", "pearson")
    ) -> None:
        task_type = Similarity(learned.task_type.classes, tuple(metrics), scored.least, scored.most)
        super().__init__(name, task_type, learned.limits["train"], scored.limits["validation"])
        self.learned, self.scored = learned, scored
        for key, table in (("learned", learned), ("scored", scored)):
            if "pair" not in table.columns:
                raise UserError(f"{self.key}.{key}.columns names no pair", "name the column of the second text")

    def source(self) -> Any:
        return [self.learned.source(), self.scored.source()]

    def build(self, cache: Path) -> Examples:
        evaluations = [split for split in self.scored.splits if split != "train"]
        return {**self.learned.read("train"), **self.scored.read(*evaluations)}
