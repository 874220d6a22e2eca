"""The answer to a question about a context, written.   T5 (arXiv 1910.10683) `data/preprocessors.py`, squad"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from paribus.tasks.example import Question
from paribus.tasks.squad import Answer, squad_scores
from paribus.tasks.types.spans import Spans
from paribus.tasks.types.text import TextTaskType
from paribus.tasks.verbalize import Fields, Parts

SAID = Fields("", "question", "context")


@dataclass(frozen=True)
class Answers(TextTaskType):
    """`question: QUESTION context: CONTEXT` is read, the first of the given answers is learned, and what is written is
    scored against all of them by SQuAD's rules. Of a context that is too long a part is not read.
    """

    single: bool
    metrics: tuple[str, ...] = ("f1", "em")
    fields: Fields = SAID
    known: ClassVar[tuple[str, ...]] = ("em", "f1")
    example: ClassVar[type] = Question

    def check_examples(self, rows: Sequence[Question], key: str) -> None:
        """See `TaskType.check_examples`."""
        self._plain.check_examples(rows, key)

    def counts(self, rows: Sequence[Question]) -> dict[str, int]:
        """See `TaskType.counts`."""
        return self._plain.counts(rows)

    def source(self, example: Question) -> Parts:
        """See `TextTaskType.source`."""
        return [(f"{self.fields.text}:", example.question), (f"{self.fields.pair}:", example.context)]

    def target(self, example: Question) -> str:
        """See `TextTaskType.target`."""
        return example.answers[0]

    def most(self, tokenizer: Any, settings: Any) -> int:
        """See `TextTaskType.most`."""
        return int(settings.target_length)

    def read(self, texts: Sequence[str], tokenizer: Any) -> list[Answer]:
        """See `TextTaskType.read`: the texts themselves."""
        return [Answer(text) for text in texts]

    def score(self, predictions: Sequence[Answer], examples: Sequence[Question]) -> dict[str, float]:
        """See `TaskType.score`."""
        values = squad_scores(predictions, [row.answers for row in examples], None)
        return {name: values[name] for name in self.metrics}

    def baselines(self, train: Sequence[Question], validation: Sequence[Question]) -> Mapping[str, Any]:
        """See `TaskType.baselines`."""
        return self._plain.baselines(train, validation)

    @property
    def _plain(self) -> Spans:
        """The form that a head on an encoder has."""
        return Spans(self.metrics)
