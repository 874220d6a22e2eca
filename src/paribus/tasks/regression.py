"""A value for a text or a pair of texts, from the columns of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paribus.core.errors import UserError
from paribus.tasks.columns import TableTask
from paribus.tasks.example import Example
from paribus.tasks.types.regression import Regression

if TYPE_CHECKING:
    import pyarrow as pa


class Values(TableTask):
    """Regression (see `TableTask`).

    Args:
        columns: `{text: ..., label: ...}` and for pairs also `pair`.
        least, most: the range of the labels. Rows without a label (null or NaN, or -1 where that is outside) are left
            out.
        step: distance of the values that a text-to-text model writes.
    """

    allowed: ClassVar[tuple[str, ...]] = ("pair",)

    def __init__(
        self,
        name: str,
        columns: Mapping[str, str],
        least: float,
        most: float,
        metrics: Sequence[str] = ("pearson", "spearman"),
        step: float = 0.2,
        **source: Any,
    ) -> None:
        self.least, self.most = float(least), float(most)
        super().__init__(name, Regression(tuple(metrics), self.least, self.most, float(step)), columns, **source)
        if not self.least < self.most:
            raise UserError(f"{self.key}.least={least} is not below most={most}", "give the range of the labels")
        if not 0 < step <= self.most - self.least:
            raise UserError(f"{self.key}.step={step}", "give the distance of the values that are written, as 0.2")

    def _meaning(self) -> Any:
        return [self.least, self.most]

    def _rows(self, table: pa.Table, split: str) -> list[Example]:
        values = {ours: table.column(theirs).to_pylist() for ours, theirs in self.columns.items()}
        pairs = values.get("pair", [None] * table.num_rows)
        rows = []
        for row, (text, pair, label) in enumerate(zip(values["text"], pairs, values["label"], strict=True)):
            if (value := self._value(label, row, split)) is not None:
                self._check_text(text, "text", row, split)
                if "pair" in self.columns:
                    self._check_text(pair, "pair", row, split)
                rows.append(Example(text, pair, value))
        return rows

    def _value(self, label: Any, row: int, split: str) -> float | None:
        number = isinstance(label, int | float) and not isinstance(label, bool)
        if label is None or (number and math.isnan(label)):
            return None
        if number and self.least <= label <= self.most:
            return float(label)
        if label == -1:
            return None
        raise UserError(
            f"{self.key}: row {row} of {split} has the label {label!r}, no number from {self.least} to {self.most}",
            f"mend the row, or set {self.key}.least and {self.key}.most",
        )
