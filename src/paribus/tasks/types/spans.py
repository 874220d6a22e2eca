"""A question and the span of a context that answers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from paribus.core.errors import UserError
from paribus.tasks.encode import Array, Encoded, frame
from paribus.tasks.example import Question
from paribus.tasks.squad import Answer, squad_scores
from paribus.tasks.types.base import Pooler, TaskType
from paribus.tasks.verbalize import Fields

if TYPE_CHECKING:
    from paribus.models.heads.head import Head
    from paribus.models.network import Batch

LEAST = 8  # tokens of a row


@dataclass(frozen=True)
class Windows:
    """Framed rows `[CLS] question [SEP] window of the context [SEP]` (T tokens, N rows)."""

    framed: Encoded  # label_N: [N, 2], first and last token of the answer, (0, 0) where the window has none
    example_N: Array  # int64: the number of the example
    first_N: Array  # int64: where in the row the window begins
    span_T2: Array  # int64 [T, 2]: the characters of the context that a token of it stands for

    @property
    def length_N(self) -> Array:
        """See `Rows.length_N`."""
        return self.framed.length_N

    def batch(self, row_B: Array, multiple: int) -> dict[str, Any]:
        """See `Rows.batch`: `label_B` is [B, 2]."""
        return self.framed.batch(row_B, multiple)


@dataclass(frozen=True)
class Spans(TaskType):
    """The first and the last token of the answer, or [CLS] for none (BERT, sections 4.2 and 4.3; `run_squad.py`).

    A context that is too long is read in windows that begin `stride` tokens apart, or half a window where that is
    shorter; of a question `question` tokens are read, but at most a third of the row. An answer has at most `longest`
    tokens, and is the best of all windows; in training it is the first of the given ones. Of the metrics, `em` and `f1`
    are SQuAD's, `best_em` and `best_f1` those at the best threshold for no answer; `threshold` is that of the others.
    """

    metrics: tuple[str, ...] = ("f1", "em")
    answerless: bool = False
    threshold: float = 0.0
    stride: int = 128
    question: int = 64
    longest: int = 30
    known: ClassVar[tuple[str, ...]] = ("em", "f1", "best_em", "best_f1")
    example: ClassVar[type] = Question

    def __post_init__(self) -> None:
        object.__setattr__(self, "metrics", tuple(self.metrics))

    def check(self, key: str) -> None:
        """See `TaskType.check`."""
        super().check(key)
        if not self.answerless and any(name.startswith("best_") for name in self.metrics):
            raise UserError(f"{key}.metrics: {list(self.metrics)} without answerless", f"set {key}.answerless=true")
        for name in ("stride", "question", "longest"):
            if getattr(self, name) < 1:
                raise UserError(f"{key}.{name}={getattr(self, name)}", "give a number of tokens")

    def written(self, fields: Fields, single: bool) -> TaskType:
        """See `TaskType.written`: the answer. Raises UserError where some questions have none."""
        from paribus.tasks.types.answers import Answers

        if self.answerless:
            cause = f"tasks.{fields.name} has questions without an answer, but the model writes one"
            raise UserError(cause, "take task=squad_v1, or model=bert_tiny")
        return Answers(single, self.metrics)

    def check_examples(self, rows: Sequence[Question], key: str) -> None:
        """See `TaskType.check_examples`."""
        if not any(row.answers for row in rows):
            raise UserError(f"{key}: no training question has an answer", "give a train split with answers")

    def counts(self, rows: Sequence[Question]) -> dict[str, int]:
        """See `TaskType.counts`: with and without answers."""
        answered = sum(bool(row.answers) for row in rows)
        return {"answered": answered, "unanswered": len(rows) - answered}

    def encode(self, examples: Sequence[Question], tokenizer: Any, vocabulary: Any, settings: Any) -> Windows:
        """See `TaskType.encode`."""
        length = settings.length
        if length < LEAST:
            raise UserError(f"fine-tuning length {length} leaves no room for a question and its context", "raise it")
        contexts = list(dict.fromkeys(row.context for row in examples))
        batch, span_T2 = tokenizer.locate(contexts)
        end_C = np.cumsum(batch.length_S)
        pieces = {
            text: (batch.ids_T[end - size : end], span_T2[end - size : end])
            for text, end, size in zip(contexts, end_C.tolist(), batch.length_S.tolist(), strict=True)
        }
        asked = [ids for ids, _ in tokenizer.encode([row.question for row in examples])]
        most = max(1, min(self.question, length // 3))
        found = _Windows([], [], [], [], [])
        for number, (row, ids_Q) in enumerate(zip(examples, asked, strict=True)):
            room = length - 3 - len(ids_Q[:most])
            found.add(number, row, ids_Q[:most], *pieces[row.context], room, min(self.stride, max(1, room // 2)))
        return found.rows(vocabulary)

    def head(self, settings: Any, model: Any, seed: int, pooler: Pooler | None = None) -> Head:
        """See `TaskType.head`; no pooler is read."""
        from paribus.models.heads.tokens import SpanHead

        head: Head = settings.head.for_tokens(model, SpanHead, seed)
        return head

    def outputs(self, model: Any, head: Any, batch: Batch) -> Sequence[Any]:
        """See `TaskType.outputs`: [B, L, 2], the scores of first and last tokens."""
        logits: Sequence[Any] = head.logits(model(batch), batch).float().cpu().numpy()
        return logits

    def predictions(self, outputs_N: Sequence[Any], rows: Windows, examples: Sequence[Question]) -> list[Answer]:
        """See `TaskType.predictions`: over all windows the best span, and the least that is said for none."""
        best = [(-np.inf, "")] * len(examples)
        none = np.full(len(examples), np.inf)
        starts, lengths = rows.framed.start_N.tolist(), rows.length_N.tolist()
        for at, score_L2 in enumerate(outputs_N):
            number, first, length = int(rows.example_N[at]), int(rows.first_N[at]), lengths[at]
            none[number] = min(none[number], float(score_L2[0].sum()))
            value, start, end = best_span(score_L2[first : length - 1], self.longest)
            if value > best[number][0]:
                span_T2 = rows.span_T2[starts[at] + first :]
                best[number] = value, examples[number].context[int(span_T2[start, 0]) : int(span_T2[end, 1])].strip()
        return [Answer(text, float(null - value)) for (value, text), null in zip(best, none, strict=True)]

    def score(self, predictions: Sequence[Answer], examples: Sequence[Question]) -> dict[str, float]:
        """See `TaskType.score`."""
        threshold = self.threshold if self.answerless else None
        values = squad_scores(predictions, [row.answers for row in examples], threshold)
        return {name: values[name] for name in self.metrics}

    def baselines(self, train: Sequence[Question], validation: Sequence[Question]) -> Mapping[str, Any]:
        """See `TaskType.baselines`: words beside those of the question; where some have no answer, none for all."""
        from paribus.tasks.baselines import answers_by_words

        found: dict[str, Any] = {"bag_of_words": answers_by_words(train, validation)}
        return {**({"majority": [Answer("", 1.0)] * len(validation)} if self.answerless else {}), **found}


def best_span(score_L2: Array, longest: int) -> tuple[float, int, int]:
    """(score, first, last) of the best span of at most so many tokens; (-inf, 0, 0) of nothing."""
    size = len(score_L2)
    found = (-np.inf, 0, 0)
    for more in range(min(longest, size)):
        total_L = score_L2[: size - more, 0] + score_L2[more:, 1]
        at = int(total_L.argmax())
        if total_L[at] > found[0]:
            found = float(total_L[at]), at, at + more
    return found


def answer_tokens(span_T2: Array, start: int, end: int) -> tuple[int, int] | None:
    """The first and the last of the tokens that stand for any of the characters from `start` to `end`, if any."""
    inside = np.flatnonzero((span_T2[:, 1] > start) & (span_T2[:, 0] < end) & (span_T2[:, 1] > span_T2[:, 0]))
    return (int(inside[0]), int(inside[-1])) if len(inside) else None


@dataclass(frozen=True)
class _Windows:
    """Rows in the making."""

    sides: list[tuple[Array, Array]]
    labels: list[tuple[int, int]]
    examples: list[int]
    firsts: list[int]
    spans: list[Array]

    def add(
        self, number: int, row: Question, ids_Q: Array, ids_T: Array, span_T2: Array, room: int, stride: int
    ) -> None:
        """All windows of an example."""
        first = len(ids_Q) + 2
        answer = answer_tokens(span_T2, row.starts[0], row.starts[0] + len(row.answers[0])) if row.answers else None
        for begin in window_starts(len(ids_T), room, stride):
            end = min(begin + room, len(ids_T))
            inside = answer is not None and begin <= answer[0] and answer[1] < end
            self.labels.append((first + answer[0] - begin, first + answer[1] - begin) if answer and inside else (0, 0))
            self.sides.append((ids_Q, ids_T[begin:end]))
            self.examples.append(number)
            self.firsts.append(first)
            self.spans.extend([np.zeros((first, 2), np.int64), span_T2[begin:end], np.zeros((1, 2), np.int64)])

    def rows(self, vocabulary: Any) -> Windows:
        """All rows, framed."""
        questions, contexts = (list(side) for side in zip(*self.sides, strict=True))
        framed = frame([questions, contexts], np.array(self.labels, np.int64), vocabulary)
        return Windows(framed, np.array(self.examples), np.array(self.firsts), np.concatenate(self.spans))


def window_starts(tokens: int, room: int, stride: int) -> list[int]:
    """Where windows of `room` tokens begin, so that the last of them reaches the end."""
    return [0, *range(stride, max(0, tokens - room) + stride, stride)] if tokens > room else [0]
