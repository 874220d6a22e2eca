"""A text for a text: a summary, a translation, an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from paribus.core.errors import UserError
from paribus.tasks.example import Transfer
from paribus.tasks.text_metrics import TEXT_METRICS, text_scores
from paribus.tasks.types.base import TaskType
from paribus.tasks.types.text import TextTaskType
from paribus.tasks.verbalize import Fields, Parts


@dataclass(frozen=True)
class FreeText(TextTaskType):
    """Anything may be written; it is scored against the one target."""

    fields: Fields
    single: bool = False
    metrics: tuple[str, ...] = ("rougeL", "exact_match")
    known: ClassVar[tuple[str, ...]] = TEXT_METRICS
    example: ClassVar[type] = Transfer

    def written(self, fields: Fields, single: bool) -> TaskType:
        """See `TaskType.written`: itself, for that kind of model."""
        return replace(self, single=single)

    def check_examples(self, rows: Sequence[Transfer], key: str) -> None:
        """See `TaskType.check_examples`."""
        if len({row.target for row in rows}) < 2:
            raise UserError(f"{key}: all training examples have the same target", "give a train split with others")

    def counts(self, rows: Sequence[Transfer]) -> dict[str, int]:
        """See `TaskType.counts`: words of all targets, and different targets."""
        return {"words": sum(len(row.target.split()) for row in rows), "different": len({row.target for row in rows})}

    def source(self, example: Transfer) -> Parts:
        """See `TextTaskType.source`."""
        return self.fields.parts(example.text, example.pair)

    def target(self, example: Transfer) -> str:
        """See `TextTaskType.target`."""
        return example.target

    def most(self, tokenizer: Any, settings: Any) -> int:
        """See `TextTaskType.most`."""
        return int(settings.target_length)

    def read(self, texts: Sequence[str], tokenizer: Any) -> Sequence[str]:
        """See `TextTaskType.read`: the texts themselves."""
        return texts

    def score(self, predictions: Sequence[str], examples: Sequence[Transfer]) -> dict[str, float]:
        """See `TaskType.score`."""
        return text_scores(self.metrics, predictions, [row.target for row in examples])

    def baselines(self, train: Sequence[Transfer], validation: Sequence[Transfer]) -> Mapping[str, Any]:
        """See `TaskType.baselines`: the most frequent target, and that of the training text with the likest words."""
        from paribus.tasks.baselines import targets_by_words

        most = Counter(row.target for row in train).most_common(1)[0][0]
        return {"majority": [most] * len(validation), "bag_of_words": targets_by_words(train, validation)}
