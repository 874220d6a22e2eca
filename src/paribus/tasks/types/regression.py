"""A value for a text or a pair of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from paribus.core.errors import UserError
from paribus.tasks.example import Example
from paribus.tasks.types.base import TaskType
from paribus.tasks.types.classification import RowTaskType
from paribus.tasks.verbalize import Fields

if TYPE_CHECKING:
    from paribus.models.heads.loss import RowLoss


@dataclass(frozen=True)
class Regression(RowTaskType):
    """One value, by the squared error to the label as it stands (BERT's and GLUE's way with STS-B).

    `least`, `most` and `step` matter where it is written: T5's 21 classes are 1 to 5 in steps of 0.2, to which labels
    from 0 add five.
    """

    metrics: tuple[str, ...] = ("pearson", "spearman")
    least: float = 0.0
    most: float = 5.0
    step: float = 0.2
    known: ClassVar[tuple[str, ...]] = ("pearson", "spearman")

    def __post_init__(self) -> None:
        object.__setattr__(self, "metrics", tuple(self.metrics))

    @property
    def span(self) -> tuple[float, float]:
        """The range of the labels."""
        return self.least, self.most

    @property
    def width(self) -> int:
        """One value."""
        return 1

    def loss(self, settings: Any) -> RowLoss:
        """The squared error; label smoothing and focal loss are for classes."""
        from paribus.models.heads.loss import squared_error

        return squared_error

    def written(self, fields: Fields, single: bool) -> TaskType:
        """See `TaskType.written`: the nearest multiple of `step`."""
        from paribus.tasks.types.labels import Numbers

        return Numbers(fields, single, self.least, self.most, self.step, self.metrics)

    def check_examples(self, rows: Sequence[Example], key: str) -> None:
        """See `TaskType.check_examples`."""
        if len({row.label for row in rows}) < 2:
            raise UserError(f"{key}: all training examples have the same label", "give a train split with other labels")

    def counts(self, rows: Sequence[Example]) -> dict[str, int]:
        """See `TaskType.counts`: by whole number."""
        found = [round(row.label) for row in rows]
        return {str(value): found.count(value) for value in sorted(set(found))}

    def baselines(self, train: Sequence[Example], validation: Sequence[Example]) -> Mapping[str, Any]:
        """See `TaskType.baselines`: the mean, and a linear model on a bag of words (of a pair also their overlap)."""
        from paribus.tasks.baselines import values_by_words

        mean = np.full(len(validation), np.mean([row.label for row in train]))
        return {"majority": mean, "bag_of_words": values_by_words(train, validation)}
