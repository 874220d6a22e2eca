"""Classes and values as words.   T5 (arXiv 1910.10683), section 2.4"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from paribus.core.errors import UserError
from paribus.tasks.encode import Array, lengths, tokens
from paribus.tasks.example import Example, normalized
from paribus.tasks.metrics import METRICS
from paribus.tasks.types.classification import Classification, RowTaskType
from paribus.tasks.types.regression import Regression
from paribus.tasks.types.text import TextTaskType
from paribus.tasks.verbalize import Fields, Parts, number, places, rounded

SPARE = 2  # tokens that may be written beyond the longest word and its end
UNKNOWN = "unknown_rate"  # share of answers that are none of the task's


class LabelTaskType(TextTaskType):
    """One of few words is to be written. An answer that is none of them is wrong, and is counted."""

    @property
    @abstractmethod
    def words(self) -> tuple[str, ...]:
        """All that may be written."""

    @property
    @abstractmethod
    def plain(self) -> RowTaskType:
        """The form that a head on an encoder has."""

    def source(self, example: Example) -> Parts:
        """See `TextTaskType.source`."""
        return self.fields.parts(example.text, example.pair)

    def most(self, tokenizer: Any, settings: Any) -> int:
        """See `TextTaskType.most`."""
        return int(lengths(tokens(self.words, tokenizer)).max()) + 1 + SPARE

    def check_words(self, tokenizer: Any, settings: Any) -> None:
        """See `TaskType.check_words`: every word fits, and the tokenizer tells it apart from the others."""
        super().check_words(tokenizer, settings)
        ids = tokens(self.words, tokenizer)
        longest, room, name = int(lengths(ids).max()) + 1, settings.target_length, self.fields.name
        if longest > room:
            word = self.words[int(lengths(ids).argmax())]
            raise UserError(
                f"finetune.target_length={room} cuts the label {word!r} of {name}", f"raise it to {longest}"
            )
        spelled = tokenizer.texts(ids)
        first = places(spelled)
        for place, text in enumerate(spelled):
            if (other := first[normalized(text)]) != place:
                raise UserError(
                    f"the tokenizer reads the labels {self.words[other]!r} and {self.words[place]!r} of {name} alike",
                    "raise tokenizer.vocab_size, or train the tokenizer on text that has their letters",
                )

    def found(self, texts: Sequence[str], tokenizer: Any) -> Array:
        """Int64 [N]: which word each text is, spelled as the tokenizer does; -1 where it is none."""
        known = places(tokenizer.texts(tokens(self.words, tokenizer)))
        return np.array([known.get(normalized(text), -1) for text in texts], np.int64)

    def check_examples(self, rows: Sequence[Example], key: str) -> None:
        """See `TaskType.check_examples`."""
        self.plain.check_examples(rows, key)

    def counts(self, rows: Sequence[Example]) -> dict[str, int]:
        """See `TaskType.counts`."""
        return self.plain.counts(rows)

    def baselines(self, train: Sequence[Example], validation: Sequence[Example]) -> Mapping[str, Any]:
        """See `TaskType.baselines`."""
        return self.plain.baselines(train, validation)


@dataclass(frozen=True)
class Labels(LabelTaskType):
    """A class by its name."""

    fields: Fields
    single: bool
    classes: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ("accuracy",)
    known: ClassVar[tuple[str, ...]] = METRICS

    @property
    def words(self) -> tuple[str, ...]:
        """See `LabelTaskType.words`."""
        return self.classes

    @property
    def plain(self) -> Classification:
        """See `LabelTaskType.plain`."""
        return Classification(self.classes, self.metrics)

    def target(self, example: Example) -> str:
        """See `TextTaskType.target`."""
        return self.classes[int(example.label)]

    def read(self, texts: Sequence[str], tokenizer: Any) -> Array:
        """See `TextTaskType.read`: class numbers, -1 where the answer is unknown."""
        return self.found(texts, tokenizer)

    def score(self, predictions: Any, examples: Sequence[Example]) -> dict[str, float]:
        """See `TaskType.score`; an unknown answer counts as the class behind the right one, so that it is wrong."""
        found_N = np.asarray(predictions)
        wrong_N = (np.array([row.label for row in examples]) + 1) % len(self.classes)
        values = self.plain.score(np.where(found_N < 0, wrong_N, found_N), examples)
        return {**values, UNKNOWN: float((found_N < 0).mean())}


@dataclass(frozen=True)
class Numbers(LabelTaskType):
    """A value by the nearest multiple of `step`."""

    fields: Fields
    single: bool
    least: float
    greatest: float
    step: float
    metrics: tuple[str, ...] = ("pearson", "spearman")
    known: ClassVar[tuple[str, ...]] = Regression.known

    @property
    def words(self) -> tuple[str, ...]:
        """See `LabelTaskType.words`."""
        count = round((self.greatest - self.least) / self.step)
        return tuple(dict.fromkeys(rounded(self.least + at * self.step, self.step) for at in range(count + 1)))

    @property
    def plain(self) -> Regression:
        """See `LabelTaskType.plain`."""
        return Regression(self.metrics)

    def target(self, example: Example) -> str:
        """See `TextTaskType.target`."""
        return rounded(example.label, self.step)

    def read(self, texts: Sequence[str], tokenizer: Any) -> Array:
        """See `TextTaskType.read`: values, NaN where the answer is unknown."""
        values = [float(word) for word in self.words]
        known = self.found(texts, tokenizer)
        read = [values[at] if at >= 0 else number(text) for at, text in zip(known, texts, strict=True)]
        return np.array([np.nan if value is None else value for value in read])

    def score(self, predictions: Any, examples: Sequence[Example]) -> dict[str, float]:
        """See `TaskType.score`; an unknown answer counts as 1 below the least value (T5 reads -1 for STS-B)."""
        found_N = np.asarray(predictions, np.float64)
        unknown_N = np.isnan(found_N)
        values = self.plain.score(np.where(unknown_N, self.least - 1, found_N), examples)
        return {**values, UNKNOWN: float(unknown_N.mean())}
