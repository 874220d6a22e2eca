"""Extractive question answering from a table of the layout of SQuAD."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paribus.core.errors import UserError
from paribus.tasks.columns import TableTask
from paribus.tasks.example import Question
from paribus.tasks.types.spans import Spans

if TYPE_CHECKING:
    import pyarrow as pa


class Questions(TableTask):
    """Questions whose answers are spans of a context (see `TableTask`).

    Args:
        columns: `{question: ..., context: ..., answers: ...}`; `answers` holds `{text: [...], answer_start: [...]}`.
        answerless: whether there are questions without an answer (SQuAD 2.0).
        threshold: logits by which no answer must be the better one to be given.
        stride, question, longest: see `Spans`.
    """

    needed: ClassVar[tuple[str, ...]] = ("question", "context", "answers")
    strings: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        name: str,
        columns: Mapping[str, str],
        metrics: Sequence[str] = ("f1", "em"),
        answerless: bool = False,
        threshold: float = 0.0,
        stride: int = 128,
        question: int = 64,
        longest: int = 30,
        **source: Any,
    ) -> None:
        task_type = Spans(tuple(metrics), answerless, threshold, stride, question, longest)
        super().__init__(name, task_type, columns, **source)

    def _meaning(self) -> Any:
        return [bool(getattr(self.task_type, "answerless", False))]

    def _rows(self, table: pa.Table, split: str) -> list[Question]:
        questions, contexts, answers = (table.column(self.columns[ours]).to_pylist() for ours in self.needed)
        rows = zip(questions, contexts, answers, strict=True)
        return [self._row(row, *given, split=split) for row, given in enumerate(rows)]

    def _row(self, row: int, question: Any, context: Any, answers: Any, *, split: str) -> Question:
        self._check_text(question, "question", row, split)
        self._check_text(context, "context", row, split)
        if not isinstance(answers, dict) or not {"text", "answer_start"} <= set(answers):
            raise UserError(
                f"{self.key}: row {row} of {split} has no text and answer_start in {self.columns['answers']!r}",
                f"choose another column with {self.key}.columns.answers",
            )
        found = Question(question, context, list(answers["text"]), [int(at) for at in answers["answer_start"]])
        self._check_answers(found, row, split)
        return found

    def _check_answers(self, row: Question, number: int, split: str) -> None:
        where = f"{self.key}: row {number} of {split}"
        if not row.answers and not getattr(self.task_type, "answerless", False):
            raise UserError(f"{where} has no answer", f"set {self.key}.answerless=true, or leave the row out")
        if len(row.answers) != len(row.starts):
            raise UserError(f"{where} has {len(row.answers)} answers and {len(row.starts)} offsets", "mend the row")
        for answer, start in zip(row.answers, row.starts, strict=True):
            if start < 0 or row.context[start : start + len(answer)] != answer or not answer.strip():
                raise UserError(
                    f"{where}: the answer {answer[:40]!r} is not at character {start} of its context",
                    "mend answer_start or leave the row out",
                )
