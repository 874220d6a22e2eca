"""A value for a text or a pair of texts: by a head, in words, or as the similarity that a classifier learns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from paribus.core.errors import UserError
from paribus.core.settings import HIGHEST, FineTuning, within
from paribus.tasks.baselines import compare_words, regress_by_words
from paribus.tasks.examples import Example
from paribus.tasks.metrics import score_labels
from paribus.tasks.prompts import Fields, parse_number, round_to_step
from paribus.tasks.types.base import LOSSES
from paribus.tasks.types.row import RowTaskType
from paribus.tasks.types.text_to_text import UNKNOWN, WordTaskType

if TYPE_CHECKING:
    from paribus.data.sequences import Array
    from paribus.data.tokens.tokenizer import Tokenizer
    from paribus.models.heads.head import RowLoss


@dataclass(frozen=True)
class Regression(RowTaskType):
    """One value, trained by the squared error to the label (as BERT and GLUE do with STS-B).

    A text-to-text model writes multiples of `step` from `least` to `most`: T5's 21 classes are 1 to 5 in steps of 0.2;
    labels from 0 add five. `symmetric`: the two texts of a pair have no order.
    """

    metrics: tuple[str, ...] = ("pearson", "spearman")
    least: float = field(default=0.0, metadata=within(-HIGHEST, HIGHEST))
    most: float = field(default=5.0, metadata=within(-HIGHEST, HIGHEST))
    step: float = 0.2
    symmetric: bool = False
    known_metrics: ClassVar[tuple[str, ...]] = ("pearson", "spearman")
    width: ClassVar[int] = 1
    probed: ClassVar[bool] = True

    @property
    def label_range(self) -> tuple[float, float]:
        return self.least, self.most

    def find_unread(self, settings: FineTuning) -> list[str]:
        """Label smoothing and focal loss are for classes."""
        return [*super().find_unread(settings), *LOSSES]

    def make_loss(self, settings: FineTuning) -> RowLoss:
        """The squared error."""
        from paribus.models.heads.head import squared_error

        return squared_error

    def verbalize(self, fields: Fields, single: bool) -> RoundedValues:
        return RoundedValues(fields, single, self.least, self.most, self.step, self.metrics)

    def count_labels(self, rows: Sequence[Example]) -> dict[str, int]:
        """Labels are rounded to whole numbers."""
        return count_rounded(rows)

    def predict_baselines(self, train: Sequence[Example], validation: Sequence[Example]) -> Mapping[str, Any]:
        """The mean, and a linear model on a bag of words (for pairs also on their overlap)."""
        mean = np.full(len(validation), np.mean([row.label for row in train]))
        return {"majority": mean, "bag_of_words": regress_by_words(train, validation)}


@dataclass(frozen=True)
class RoundedValues(WordTaskType):
    """A value in words, rounded to the nearest multiple of `step`."""

    fields: Fields
    single: bool
    least: float
    greatest: float
    step: float
    metrics: tuple[str, ...] = ("pearson", "spearman")
    known_metrics: ClassVar[tuple[str, ...]] = Regression.known_metrics

    @property
    def words(self) -> tuple[str, ...]:
        count = round((self.greatest - self.least) / self.step)
        return tuple(dict.fromkeys(round_to_step(self.least + at * self.step, self.step) for at in range(count + 1)))

    @property
    def plain(self) -> Regression:
        return Regression(self.metrics)

    def target(self, example: Example) -> str:
        return round_to_step(example.label, self.step)

    def parse(self, texts: Sequence[str], tokenizer: Tokenizer) -> Array:
        """Values, NaN for an unknown answer."""
        values = [float(word) for word in self.words]
        known = self.find_words(texts, tokenizer)
        read = [values[at] if at >= 0 else parse_number(text) for at, text in zip(known, texts, strict=True)]
        return np.array(read, np.float64)  # None becomes NaN

    def score(self, predictions: Sequence[Any] | Array, examples: Sequence[Example]) -> dict[str, float]:
        """An unknown answer counts as 1 below the least value (T5 reads -1 for STS-B)."""
        value_N = np.asarray(predictions, np.float64)
        unknown_N = np.isnan(value_N)
        values = self.plain.score(np.where(unknown_N, self.least - 1, value_N), examples)
        return {**values, UNKNOWN: float(unknown_N.mean())}


@dataclass(frozen=True)
class Similarity(RowTaskType):
    """Trained on the classes of pairs, scored by the cosine of two texts against a value for each pair (Sentence-BERT,
    arXiv 1908.10084, sections 3 and 6).

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

    def count_labels(self, rows: Sequence[Example]) -> dict[str, int]:
        """Classes by their numbers; values are rounded to whole numbers."""
        return count_rounded(rows)

    def score(self, predictions: Sequence[Any] | Array, examples: Sequence[Example]) -> dict[str, float]:
        """Predictions are cosines, [N, 1] or [N]."""
        return score_labels(self.metrics, np.asarray(predictions), np.array([row.label for row in examples]), 1)

    def predict_baselines(self, train: Sequence[Example], validation: Sequence[Example]) -> Mapping[str, Any]:
        """The same value for all, and the cosine of bags of words."""
        return {"majority": np.zeros(len(validation)), "bag_of_words": compare_words(train, validation)}


def count_rounded(rows: Sequence[Example]) -> dict[str, int]:
    """{label, rounded to a whole number: examples}, sorted by label."""
    return {str(label): count for label, count in sorted(Counter(round(row.label) for row in rows).items())}
