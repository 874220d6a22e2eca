"""Similarity of texts from a classifier of pairs.   Sentence-BERT (arXiv 1908.10084), sections 3 and 6"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from paribus.core.bounds import HIGHEST, within
from paribus.core.errors import UserError
from paribus.core.settings import FineTuning
from paribus.tasks.baselines import compare_words
from paribus.tasks.examples import Example
from paribus.tasks.metrics import score_labels
from paribus.tasks.types.row import RowTaskType

if TYPE_CHECKING:
    from paribus.data.text import Array


@dataclass(frozen=True)
class Similarity(RowTaskType):
    """Trained on the classes of pairs, scored by the cosine of two texts against a value for each pair.

    Args:
        least, most: the range of the values.
    """

    classes: tuple[str, ...]
    metrics: tuple[str, ...] = ("spearman", "pearson")
    least: float = field(default=0.0, metadata=within(-HIGHEST, HIGHEST))
    most: float = field(default=5.0, metadata=within(-HIGHEST, HIGHEST))
    known_metrics: ClassVar[tuple[str, ...]] = ("pearson", "spearman")

    @property
    def width(self) -> int:
        return len(self.classes)

    def answer_range(self, settings: FineTuning) -> tuple[float, float]:
        return self.least, self.most

    def check(self, key: str) -> None:
        super().check(key)
        self.check_classes(key)

    def check_settings(self, settings: FineTuning, key: str) -> None:
        """The texts of a pair must be read separately, by a classifier."""
        super().check_settings(settings, key)
        if not settings.head.pairs or settings.head.by_cosine:
            cause = f"{key} is trained by a classifier on two texts that are read apart"
            raise UserError(cause, "set finetune/head=siamese finetune.head.parts=[u,v,difference]")

    def check_examples(self, rows: Sequence[Example], key: str) -> None:
        if len({row.label for row in rows}) < 2:
            raise UserError(f"{key}: all training examples have the same label", "use a train split with every class")

    def count_labels(self, rows: Sequence[Example]) -> dict[str, int]:
        """Classes by their numbers; values are rounded to whole numbers."""
        return {str(value): count for value, count in sorted(Counter(round(row.label) for row in rows).items())}

    def score(self, predictions: Sequence[Any] | Array, examples: Sequence[Example]) -> dict[str, float]:
        """Predictions are cosines, [N, 1] or [N]."""
        return score_labels(self.metrics, np.asarray(predictions), np.array([row.label for row in examples]), 1)

    def predict_baselines(self, train: Sequence[Example], validation: Sequence[Example]) -> Mapping[str, Any]:
        """The same value for all, and the cosine of bags of words."""
        return {"majority": np.zeros(len(validation)), "bag_of_words": compare_words(train, validation)}
