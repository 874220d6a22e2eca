"""Tables of SuperGLUE (arXiv 1905.00537) whose rows are more than a text or a pair of texts with a label."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from paribus.core.errors import UserError
from paribus.tasks.examples import EntityExample, GroupedExample
from paribus.tasks.prompts import Fields
from paribus.tasks.tables.answers import read_answers
from paribus.tasks.tables.labels import spell_classes
from paribus.tasks.tables.table import LabelTable, QuestionTable, TableSource, TableTask
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

    semantics = 2
    optional = ("group",)
    lists = True

    def __init__(
        self,
        name: str,
        columns: Mapping[str, Any],
        classes: Sequence[str],
        metrics: Sequence[str] = ("accuracy",),
        **source: Unpack[TableSource],
    ) -> None:
        kind = GroupedClassification if "group" in columns else Classification
        task_type = kind(spell_classes(classes, f"tasks.{name}"), tuple(metrics))
        TableTask.__init__(self, name, task_type, columns, **source)
        self.fields = Fields(name, self._source_columns("text")[0])

    def _values(self, table: pa.Table) -> dict[str, list[Any]]:
        texts = []
        for number, row in enumerate(table.select(self._source_columns("text")).to_pylist()):
            if missing := [name for name, text in row.items() if not isinstance(text, str) or not text.strip()]:
                cause = f"{self.key}: row {number} has no text in column {missing[0]!r}"
                raise UserError(cause, f"fix the row or choose other columns with {self.key}.columns.text")
            (_, first), *rest = row.items()
            texts.append(_MARKUP.sub("", " ".join([first, *(f"{name}: {text}" for name, text in rest)])))
        values = {"text": texts, "label": table.column(self.columns["label"]).to_pylist()}
        if "group" in self.columns:
            groups = table.select(self._source_columns("group")).to_pylist()
            values["group"] = ["\n".join(map(str, row.values())) for row in groups]
        return values

    def _make_examples(
        self, values: Mapping[str, Sequence[Any]], labels: Sequence[float | None], split: str
    ) -> list[Any]:
        examples = super()._make_examples(values, labels, split)
        if "group" not in values:
            return examples
        groups = [group for group, label in zip(values["group"], labels, strict=True) if label is not None]
        return [GroupedExample(row.text, None, row.label, group) for row, group in zip(examples, groups, strict=True)]


class MarkedTable(LabelTable):
    """Classification of a text in which two spans are marked: `* first *` and `# second #`, as T5 reads WSC
    (`data/preprocessors.py`). A span that is not at its place stays unmarked.

    Args:
        columns: `{text, label, first, first_at, second, second_at}`: the spans and the numbers of their first words.
    """

    semantics = 2
    required = ("text", "label", "first", "first_at", "second", "second_at")
    optional = ()

    def _values(self, table: pa.Table) -> dict[str, list[Any]]:
        values = super()._values(table)
        spans = zip(*(values[name] for name in ("text", "first", "first_at", "second", "second_at")), strict=True)
        return {"text": [mark_two(*row) for row in spans], "label": values["label"]}


def mark_two(text: str, first: str, first_at: int, second: str, second_at: int) -> str:
    """The text with both spans marked; each mark of the first is two words more before a second one behind it."""
    marked = mark(text, first, first_at, "*")
    return mark(marked, second, second_at + (2 if first_at < second_at else 0), "#")


def mark(text: str, span: str, at: int, sign: str) -> str:
    """The text with the sign before and behind the span that begins with word `at`."""
    place = re.match(rf"((?:\S+\s){{{at}}})({re.escape(span)})", text)
    return text if place is None else f"{place[1]}{sign} {place[2]} {sign}{text[place.end() :]}"


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
        rows = zip(*(values[name] for name in ("question", "context", "spans", "answers")), strict=True)
        examples = []
        for number, (query, passage, spans, answers) in enumerate(rows):
            where = f"{self.key}: row {number} of {split}"
            if not isinstance(spans, dict) or not {"text", "start"} <= set(spans):
                raise UserError(f"{where} has no text and start in its spans", f"choose {self.key}.columns.spans")
            entities, places = read_answers(spans["text"], spans["start"], where)
            right = [(text, at) for text, at in zip(entities, places, strict=True) if text in (answers or ())]
            texts, starts = [text for text, _ in right], [at for _, at in right]
            examples.append(EntityExample(query, passage, texts, starts, list(dict.fromkeys(entities))))
            self._check_answers(examples[-1], where)
        return examples
