"""Questions whose answers are spans of a context: by a head that finds the span, or written as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.settings import FineTuning
from paribus.tasks.baselines import answer_by_words
from paribus.tasks.examples import EntityExample, QuestionExample
from paribus.tasks.metrics import Answer, score_answers
from paribus.tasks.prompts import Fields, Parts, pad_punctuation
from paribus.tasks.rows import FramedRows, TaskRows, frame, no_room, tokenize
from paribus.tasks.types.base import LOSSES, Pooler, TaskType, find_unread_by_tokens
from paribus.tasks.types.text_to_text import Verbalized

if TYPE_CHECKING:
    from paribus.data.sequences import Array
    from paribus.data.tokens.tokenizer import Tokenizer
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.ensemble import Ensemble
    from paribus.models.heads.head import Head
    from paribus.models.network import Batch, Network

LEAST = 8  # tokens of a row
T5_FIELDS = Fields("", "question", "context")
RECORD_FIELDS = Fields("record", "query", "passage")
_HIGHLIGHT = "\n@highlight\n"
_AFTER_MARK = re.compile(rf"([.?!\"']){_HIGHLIGHT}")


@dataclass(frozen=True)
class ContextWindows(FramedRows):
    """Rows `[CLS] question [SEP] window of the context [SEP]`. `label_N` is [N, 2], first and last token of the answer,
    (0, 0) if it is not in the window.
    """

    example_N: Array  # int64: the number of the example
    first_N: Array  # int64: where in the row the window begins
    span_T2: Array  # int64 [T, 2]: the characters of the context that a token covers


@dataclass(frozen=True)
class ExtractiveQA(TaskType):
    """The first and the last token of the answer, or [CLS] for no answer (BERT, sections 4.2 and 4.3; `run_squad.py`).

    In training the answer is the first of the given ones; otherwise it is the best span of all windows. The metrics
    `em` and `f1` are SQuAD's; `best_em` and `best_f1` are those at the best threshold for no answer.

    Args:
        answerless: whether some questions have no answer.
        threshold: how much higher than the best span no answer must score, for `em` and `f1`.
        stride: tokens between the windows of a context that is too long; half a window if that is shorter.
        question: tokens of a question that are read, but at most a third of the row.
        longest: tokens of an answer.
    """

    metrics: tuple[str, ...] = ("f1", "em")
    answerless: bool = False
    threshold: float = 0.0
    stride: int = 128
    question: int = 64
    longest: int = 30
    known_metrics: ClassVar[tuple[str, ...]] = ("em", "f1", "best_em", "best_f1")
    example_class: ClassVar[type] = QuestionExample

    def check(self, key: str) -> None:
        super().check(key)
        if not self.answerless and any(name.startswith("best_") for name in self.metrics):
            raise UserError(f"{key}.metrics: {list(self.metrics)} needs answerless", f"set {key}.answerless=true")
        for name, value in (("stride", self.stride), ("question", self.question), ("longest", self.longest)):
            if value < 1:
                raise UserError(f"{key}.{name}={value} is out of range", "give a number of tokens")

    def verbalize(self, fields: Fields, single: bool) -> WrittenAnswers:
        """The text of the answer. Raises UserError if some questions have none."""
        if self.answerless:
            cause = f"tasks.{fields.name} has questions without an answer, but the model always writes one"
            raise UserError(cause, "set task=squad_v1, or model=bert_tiny")
        return WrittenAnswers(single, self.metrics)

    def find_unread(self, settings: FineTuning) -> list[str]:
        """A long context is read in the task's own windows, and its tokens are scored without dropout."""
        return [*super().find_unread(settings), *find_unread_by_tokens(settings), "head.dropout", *LOSSES]

    def check_examples(self, rows: Sequence[QuestionExample], key: str) -> None:
        if not any(row.answers for row in rows):
            raise UserError(f"{key}: no training question has an answer", "use a train split with answers")

    def count_labels(self, rows: Sequence[QuestionExample]) -> dict[str, int]:
        """With and without answers."""
        answered = sum(bool(row.answers) for row in rows)
        return {"answered": answered, "unanswered": len(rows) - answered}

    def encode(
        self, examples: Sequence[QuestionExample], tokenizer: Tokenizer, vocabulary: Vocabulary, settings: FineTuning
    ) -> ContextWindows:
        length = settings.length
        if length < LEAST:
            raise no_room(length)
        contexts = list(dict.fromkeys(row.context for row in examples))  # questions share contexts
        batch, span_T2 = tokenizer.locate(contexts)
        end_C = np.cumsum(batch.length_S)
        located = {
            text: (batch.ids_T[end - size : end], span_T2[end - size : end])
            for text, end, size in zip(contexts, end_C.tolist(), batch.length_S.tolist(), strict=True)
        }
        asked = tokenize([row.question for row in examples], tokenizer)
        most = max(1, min(self.question, length // 3))
        if cut := sum(len(ids_Q) > most for ids_Q in asked):
            say(f"{cut:,} of {len(asked):,} questions are cut to their first {most} tokens; raise finetune.length")
        windows = [
            window
            for number, (row, ids_Q) in enumerate(zip(examples, asked, strict=True))
            for window in cut_windows(number, row, ids_Q[:most], *located[row.context], length, self.stride)
        ]
        sides = [window.ids_Q for window in windows], [window.ids_W for window in windows]
        rows = frame(sides, np.array([window.label for window in windows], np.int64), vocabulary)
        return ContextWindows(
            **vars(rows),
            example_N=np.array([window.example for window in windows]),
            first_N=np.array([window.first for window in windows]),
            span_T2=np.concatenate([window.span_L2 for window in windows]),
        )

    def make_head(self, settings: FineTuning, model: Network, seed: int, pooler: Pooler | None = None) -> Head:
        """The head reads no pooler."""
        from paribus.models.heads.tokens import SpanHead

        head: Head = settings.head.for_tokens(model, SpanHead, seed)
        return head

    def infer(self, model: Network | Ensemble, head: Head | Ensemble, batch: Batch) -> Array:
        """[B, L, 2], the scores of first and last tokens."""
        from paribus.models.heads.head import name_places

        logits: Array = head.logits(model(name_places([head], batch)), batch).float().cpu().numpy()
        return logits

    def predict(self, outputs_N: Sequence[Any], rows: TaskRows, examples: Sequence[QuestionExample]) -> list[Answer]:
        """The best span over all windows, and the lowest score that any of them gives to no answer."""
        assert isinstance(rows, ContextWindows)
        best = [(-np.inf, "")] * len(examples)
        none = np.full(len(examples), np.inf)
        starts, lengths = rows.start_N.tolist(), rows.length_N.tolist()
        for at, score_L2 in enumerate(outputs_N):
            number, first, length = int(rows.example_N[at]), int(rows.first_N[at]), lengths[at]
            none[number] = min(none[number], float(score_L2[0].sum()))
            value, start, end = find_best_span(score_L2[first : length - 1], self.longest)
            if value > best[number][0]:
                span_T2 = rows.span_T2[starts[at] + first :]
                best[number] = value, examples[number].context[int(span_T2[start, 0]) : int(span_T2[end, 1])].strip()
        return [Answer(text, float(null - value)) for (value, text), null in zip(best, none, strict=True)]

    def score(self, predictions: Sequence[Any] | Array, examples: Sequence[QuestionExample]) -> dict[str, float]:
        threshold = self.threshold if self.answerless else None
        values = score_answers(list(predictions), [row.answers for row in examples], threshold)
        return {name: values[name] for name in self.metrics}

    def predict_baselines(
        self, train: Sequence[QuestionExample], validation: Sequence[QuestionExample]
    ) -> Mapping[str, Any]:
        """Words near those of the question; if some questions have no answer, also no answer for all."""
        none = {"majority": [Answer("", 1.0)] * len(validation)} if self.answerless else {}
        return {**none, "bag_of_words": answer_by_words(train, validation)}


@dataclass(frozen=True)
class WrittenAnswers(Verbalized):
    """The model reads `question: QUESTION context: CONTEXT` (T5, `data/preprocessors.py`, squad), learns the first of
    the given answers, and is scored against all of them by the rules of SQuAD 1.1. A context that is too long is cut.

    As in T5, punctuation has spaces around it in all texts, also in those that are scored.
    """

    single: bool
    metrics: tuple[str, ...] = ("f1", "em")
    fields: Fields = T5_FIELDS
    known_metrics: ClassVar[tuple[str, ...]] = ("em", "f1")
    example_class: ClassVar[type] = QuestionExample

    @property
    def plain(self) -> ExtractiveQA:
        return ExtractiveQA(self.metrics)

    def source(self, example: QuestionExample) -> Parts:
        texts = ((self.fields.text, example.question), (self.fields.pair, example.context))
        return [(f"{name}:", pad_punctuation(text)) for name, text in texts]

    def target(self, example: QuestionExample) -> str:
        return pad_punctuation(example.answers[0])

    def parse(self, texts: Sequence[str], tokenizer: Tokenizer) -> list[Answer]:
        return [Answer(pad_punctuation(text)) for text in texts]

    def score(self, predictions: Sequence[Any] | Array, examples: Sequence[QuestionExample]) -> dict[str, float]:
        padded = [row._replace(answers=list(map(pad_punctuation, row.answers))) for row in examples]
        return self.plain.score(predictions, padded)


@dataclass(frozen=True)
class EntityQA(ExtractiveQA):
    """A span of the passage, scored against all entities that fill the gap (ReCoRD, arXiv 1810.12885)."""

    example_class: ClassVar[type] = EntityExample

    def verbalize(self, fields: Fields, single: bool) -> WrittenEntities:
        return WrittenEntities(single, self.metrics)


@dataclass(frozen=True)
class WrittenEntities(WrittenAnswers):
    """The model reads `record query: QUERY entities: A, B passage: PASSAGE` (T5, `data/preprocessors.py`, record), and
    writes the first entity that fills the gap. Highlights follow the passage as sentences.
    """

    fields: Fields = RECORD_FIELDS
    example_class: ClassVar[type] = EntityExample

    def source(self, example: Any) -> Parts:
        asked, given = f"{self.fields.name} {self.fields.text}:", f"{self.fields.pair}:"
        passage = _AFTER_MARK.sub(r"\1 ", example.context).replace(_HIGHLIGHT, ". ")
        return [(asked, example.question), ("entities:", ", ".join(example.entities)), (given, passage)]

    def target(self, example: Any) -> str:
        return str(example.answers[0])


class Window(NamedTuple):
    """A row `[CLS] question [SEP] part of the context [SEP]` (L tokens)."""

    example: int
    ids_Q: Array
    ids_W: Array
    label: tuple[int, int]  # see `ContextWindows`
    first: int
    span_L2: Array  # int64 [L, 2]: the characters of the context that a token covers


def cut_windows(
    number: int,
    row: QuestionExample,
    ids_Q: Array,
    ids_T: Array,
    span_T2: Array,
    length: int,
    stride: int,
) -> Iterator[Window]:
    """The rows of at most `length` tokens of an example: its question with each window of its context."""
    first, room = len(ids_Q) + 2, length - 3 - len(ids_Q)
    answer = find_tokens(span_T2, row.starts[0], row.starts[0] + len(row.answers[0])) if row.answers else None
    for begin in squad_windows(len(ids_T), room, min(stride, max(1, room // 2))):
        end, label = min(begin + room, len(ids_T)), (0, 0)
        if answer is not None and begin <= answer[0] and answer[1] < end:
            label = first + answer[0] - begin, first + answer[1] - begin
        span_L2 = np.concatenate([np.zeros((first, 2), np.int64), span_T2[begin:end], np.zeros((1, 2), np.int64)])
        yield Window(number, ids_Q, ids_T[begin:end], label, first, span_L2)


def squad_windows(tokens: int, room: int, stride: int) -> list[int]:
    """The starts of windows of `room` tokens, `stride` tokens apart, such that the last window reaches the end."""
    return [0, *range(stride, max(0, tokens - room) + stride, stride)] if tokens > room else [0]


def find_tokens(span_T2: Array, start: int, end: int) -> tuple[int, int] | None:
    """The first and the last of the tokens that cover any of the characters from `start` to `end`, if any."""
    inside = np.flatnonzero((span_T2[:, 1] > start) & (span_T2[:, 0] < end) & (span_T2[:, 1] > span_T2[:, 0]))
    return (int(inside[0]), int(inside[-1])) if len(inside) else None


def find_best_span(score_L2: Array, longest: int) -> tuple[float, int, int]:
    """(score, first, last) of the best span of at most `longest` tokens; (-inf, 0, 0) if there is no token."""
    size = len(score_L2)
    best = (-np.inf, 0, 0)
    for more in range(min(longest, size)):
        total_L = score_L2[: size - more, 0] + score_L2[more:, 1]
        at = int(total_L.argmax())
        if total_L[at] > best[0]:
            best = float(total_L[at]), at, at + more
    return best
