"""Tasks with options to choose from, as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from paribus.core.errors import UserError
from paribus.tasks.examples import Choice
from paribus.tasks.prompts import Fields
from paribus.tasks.tables import Source, TableTask
from paribus.tasks.types.multiple_choice import MultipleChoice

if TYPE_CHECKING:
    import pyarrow as pa


class ChoiceTable(TableTask):
    """Multiple choice (see `TableTask`).

    Args:
        columns: `{text: ..., options: ..., label: ...}`, and optionally `question`; `options` is a column of lists, or
            a list of columns with an option each.
        classes: names of the places of the options; the labels are these names or their numbers.

    Rows without a label (-1 or null) are left out. Raises UserError for a row with another number of options.
    """

    required = ("text", "options", "label")
    optional = ("question",)
    strings = ("text", "question", "options")

    def __init__(
        self,
        name: str,
        columns: Mapping[str, Any],
        classes: Sequence[str],
        metrics: Sequence[str] = ("accuracy",),
        **source: Unpack[Source],
    ) -> None:
        super().__init__(name, MultipleChoice(tuple(classes), tuple(metrics)), columns, **source)
        self.fields = Fields(name, self.columns["text"], self.columns.get("question"))

    def _theirs(self, ours: str) -> tuple[str, ...]:
        theirs = self.columns[ours]
        return (theirs,) if isinstance(theirs, str) else tuple(theirs)

    def _values(self, table: pa.Table) -> dict[str, list[Any]]:
        found = {ours: [table.column(name).to_pylist() for name in self._theirs(ours)] for ours in self.columns}
        apart = not isinstance(self.columns["options"], str)
        options = [list(row) for row in zip(*found["options"], strict=True)] if apart else found["options"][0]
        return {**{ours: columns[0] for ours, columns in found.items()}, "options": options}

    def _read_rows(self, table: pa.Table, split: str) -> list[Choice]:
        values, read = {"question": [None] * table.num_rows, **self._values(table)}, self._read_class(table, split)
        rows = zip(values["text"], values["question"], values["options"], values["label"], strict=True)
        found = []
        for number, (text, question, options, given) in enumerate(rows):
            if (label := read(given, number)) is not None:
                self._check_texts(text, question, options, f"row {number} of {split}")
                found.append(Choice(text, question, options, label))
        return found

    def _check_texts(self, text: object, question: object, options: object, where: str) -> None:
        asked = [text, question] if "question" in self.columns else [text]
        if not isinstance(options, list) or not all(
            isinstance(each, str) and each.strip() for each in [*asked, *options]
        ):
            raise UserError(f"{self.key}: {where} lacks a text or an option", "fix the row or choose other columns")
        if len(options) != len(self.task_type.classes):
            cause = f"{self.key}: {where} has {len(options)} options, but classes name {len(self.task_type.classes)}"
            raise UserError(cause, "leave the row out, or name another number of classes")
