"""Tables of SuperGLUE (arXiv 1905.00537) whose rows are more than a text or a pair of texts with a label."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from paribus.core.errors import UserError
from paribus.tasks.examples import EntityExample, GroupedExample
from paribus.tasks.prompts import Fields
from paribus.tasks.tables.table import UNLABELED, LabelTable, QuestionTable, TableSource, TableTask
from paribus.tasks.types.classification import Classification, GroupedClassification
from paribus.tasks.types.question_answering import EntityQA

if TYPE_CHECKING:
    import pyarrow as pa

_MARKUP = re.compile(r"</?\w+>")


class JoinedTable(LabelTable):
    """Classification of several texts in one: the first, then each further one after the name of its column, as T5
    reads WiC and MultiRC (`data/glue_utils.py`). Tags such as `<b>` are left out.

    Args:
        columns: `{text: [a, b, ...], label: ...}`, and optionally `group: [...]`: rows with the same values there
            belong together, for the metric `em`.
    """

    semantics = 1
    optional = ("group",)

    def __init__(
        self,
        name: str,
        columns: Mapping[str, Any],
        classes: Sequence[str],
        metrics: Sequence[str] = ("accuracy",),
        **source: Unpack[TableSource],
    ) -> None:
        kind = GroupedClassification if "group" in columns else Classification
        TableTask.__init__(self, name, kind(tuple(classes), tuple(metrics)), columns, **source)
        self.fields = Fields(name, self._theirs("text")[0])

    def _theirs(self, ours: str) -> tuple[str, ...]:
        theirs = self.columns[ours]
        return (theirs,) if isinstance(theirs, str) else tuple(theirs)

    def _values(self, table: pa.Table) -> dict[str, list[Any]]:
        found = {ours: table.select(self._theirs(ours)).to_pylist() for ours in self.columns}
        label = self.columns["label"]
        return {
            "text": [self._join(row, number) for number, row in enumerate(found["text"])],
            "label": [row[label] for row in found["label"]],
            **({"group": ["\n".join(map(str, row.values())) for row in found["group"]]} if "group" in found else {}),
        }

    def _join(self, row: Mapping[str, Any], number: int) -> str:
        if missing := [name for name, text in row.items() if not isinstance(text, str) or not text.strip()]:
            cause = f"{self.key}: row {number} has no text in column {missing[0]!r}"
            raise UserError(cause, f"fix the row or choose other columns with {self.key}.columns.text")
        (_, first), *rest = row.items()
        return _MARKUP.sub("", " ".join([first, *(f"{name}: {text}" for name, text in rest)]))

    def _read_rows(self, table: pa.Table, split: str) -> list[Any]:
        rows: list[Any] = super()._read_rows(table, split)
        if "group" not in self.columns:
            return rows
        values = self._values(table)
        labeled = [
            group for group, label in zip(values["group"], values["label"], strict=True) if label not in UNLABELED
        ]
        return [GroupedExample(row.text, None, row.label, group) for row, group in zip(rows, labeled, strict=True)]


class MarkedTable(LabelTable):
    """Classification of a text in which two spans are marked: `* first *` and `# second #`, as T5 reads WSC
    (`data/preprocessors.py`). A span that is not at its place stays unmarked.

    Args:
        columns: `{text, label, first, first_at, second, second_at}`: the spans and the numbers of their first words.
    """

    semantics = 1
    required = ("text", "label", "first", "first_at", "second", "second_at")
    optional = ()

    def _values(self, table: pa.Table) -> dict[str, list[Any]]:
        found = super()._values(table)
        spans = zip(*(found[name] for name in ("text", "first", "first_at", "second", "second_at")), strict=True)
        return {"text": [mark_two(*row) for row in spans], "label": found["label"]}


def mark_two(text: str, first: str, first_at: int, second: str, second_at: int) -> str:
    """The text with both spans marked; each mark of the first is two words more before a second one behind it."""
    marked = mark(text, first, first_at, "*")
    return mark(marked, second, second_at + (2 if first_at < second_at else 0), "#")


def mark(text: str, span: str, at: int, sign: str) -> str:
    """The text with the sign before and behind the span that begins with word `at`."""
    found = re.match(rf"((?:\S+\s){{{at}}})({re.escape(span)})", text)
    return text if found is None else f"{found[1]}{sign} {found[2]} {sign}{text[found.end() :]}"


class GapTable(QuestionTable):
    """Queries with a gap that an entity of the passage fills, in the layout of ReCoRD.

    Args:
        columns: `{question: ..., context: ..., spans: ..., answers: ...}`; `spans` holds `{text: [...], start: [...]}`
            of all entities, `answers` the texts of those that fill the gap.
    """

    semantics = 1
    required = ("question", "context", "spans", "answers")

    def __init__(
        self,
        name: str,
        columns: Mapping[str, str],
        metrics: Sequence[str] = ("f1", "em"),
        stride: int = 128,
        question: int = 64,
        longest: int = 30,
        **source: Unpack[TableSource],
    ) -> None:
        self.answerless = False
        TableTask.__init__(
            self, name, EntityQA(tuple(metrics), False, 0.0, stride, question, longest), columns, **source
        )

    def _read_rows(self, table: pa.Table, split: str) -> list[Any]:
        values = self._values(table)
        rows = zip(*(values[name] for name in self.required), strict=True)
        return [self._gap(f"{self.key}: row {number} of {split}", *row) for number, row in enumerate(rows)]

    def _gap(self, where: str, query: str, passage: str, spans: Mapping[str, list[Any]], answers: list[str]) -> Any:
        if not isinstance(spans, dict) or not {"text", "start"} <= set(spans):
            raise UserError(f"{where} has no text and start in its spans", f"choose {self.key}.columns.spans")
        right = [(text, at) for text, at in zip(spans["text"], spans["start"], strict=True) if text in answers]
        entities = list(dict.fromkeys(spans["text"]))
        texts, starts = [text for text, _ in right], [int(at) for _, at in right]
        found: Any = EntityExample(query, passage, texts, starts, entities)
        self._check_answers(found, where)
        return found
