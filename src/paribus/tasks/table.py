"""Classification from the columns of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paribus.core.errors import UserError
from paribus.tasks.columns import TableTask
from paribus.tasks.example import Example
from paribus.tasks.types.classification import Classification

if TYPE_CHECKING:
    import pyarrow as pa

UNLABELED = (-1, None)


class Table(TableTask):
    """Classification of a text, or of a pair of texts, from the columns of a table (see `TableTask`).

    Args:
        columns: `{text: ..., label: ...}` and for pairs also `pair`.
        classes: class names in the order of the label numbers; labels may also be these names.

    Rows without a label (-1 or null) are left out.
    """

    allowed: ClassVar[tuple[str, ...]] = ("pair",)

    def __init__(
        self,
        name: str,
        columns: Mapping[str, str],
        classes: Sequence[str],
        metrics: Sequence[str] = ("accuracy",),
        **source: Any,
    ) -> None:
        super().__init__(name, Classification(tuple(classes), tuple(metrics)), columns, **source)

    def _rows(self, table: pa.Table, split: str) -> list[Example]:
        kind = table.schema.field(self.columns["label"]).type
        if kind.num_fields:
            raise UserError(
                f"{self.key}.columns.label: {self.columns['label']!r} holds {kind}", "choose another column"
            )
        values = {ours: table.column(theirs).to_pylist() for ours, theirs in self.columns.items()}
        numbers = self._numbers(table, "label")
        texts, pairs = values["text"], values.get("pair", [None] * table.num_rows)
        rows = []
        for row, label in enumerate(values["label"]):
            if label in UNLABELED:
                continue
            if label not in numbers:
                raise UserError(
                    f"{self.key}.classes: row {row} of {split} has the label {label!r}",
                    f"name all classes, now {', '.join(self.task_type.classes)}",
                )
            self._check_text(texts[row], "text", row, split)
            if "pair" in self.columns:
                self._check_text(pairs[row], "pair", row, split)
            rows.append(Example(texts[row], pairs[row], numbers[label]))
        return rows
