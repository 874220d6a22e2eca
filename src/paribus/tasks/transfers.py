"""Texts for texts, from the columns of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paribus.tasks.columns import TableTask
from paribus.tasks.example import Transfer
from paribus.tasks.types.free_text import FreeText
from paribus.tasks.verbalize import Fields

if TYPE_CHECKING:
    import pyarrow as pa


class Transfers(TableTask):
    """A text to be written for each text (see `TableTask`).

    Args:
        columns: `{text: ..., target: ...}` and, where two texts are read, also `pair`.
        prefix: what announces the text, without its colon, such as `translate English to German`; null: name and
            column, as of every task.
    """

    needed: ClassVar[tuple[str, ...]] = ("text", "target")
    allowed: ClassVar[tuple[str, ...]] = ("pair",)
    strings: ClassVar[tuple[str, ...]] = ("text", "pair", "target")

    def __init__(
        self,
        name: str,
        columns: Mapping[str, str],
        metrics: Sequence[str] = ("rougeL", "exact_match"),
        prefix: str | None = None,
        **source: Any,
    ) -> None:
        fields = Fields(name, str(columns.get("text")), columns.get("pair"))
        if prefix is not None:
            fields = Fields("", prefix, columns.get("pair"))
        super().__init__(name, FreeText(fields, metrics=tuple(metrics)), columns, **source)
        self.fields = fields

    def _rows(self, table: pa.Table, split: str) -> list[Transfer]:
        columns = {ours: table.column(theirs).to_pylist() for ours, theirs in self.columns.items()}
        for ours, texts in columns.items():
            for row, text in enumerate(texts):
                self._check_text(text, ours, row, split)
        pairs = columns.get("pair", [None] * table.num_rows)
        return [Transfer(*row) for row in zip(columns["text"], pairs, columns["target"], strict=True)]
