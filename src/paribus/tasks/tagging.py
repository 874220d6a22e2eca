"""A tag for each word of a sentence, from the columns of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paribus.core.errors import UserError
from paribus.tasks.columns import TableTask
from paribus.tasks.example import Tagged
from paribus.tasks.types.tagging import Tagging

if TYPE_CHECKING:
    import pyarrow as pa


class Tags(TableTask):
    """Tagging (see `TableTask`); a `.conll` file has the columns `words` and `tags`.

    Args:
        columns: `{words: ..., tags: ...}`, both lists.
        classes: the tags in the order of their numbers; the data may also have these names. Of BIO tags, spans can be
            scored; others only by accuracy.
        crf: a CRF layer on top (see `CRFHead`).
    """

    needed: ClassVar[tuple[str, ...]] = ("words", "tags")
    strings: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        name: str,
        columns: Mapping[str, str],
        classes: Sequence[str],
        metrics: Sequence[str] = ("f1",),
        crf: bool = False,
        **source: Any,
    ) -> None:
        super().__init__(name, Tagging(tuple(classes), tuple(metrics), crf), columns, **source)

    def _rows(self, table: pa.Table, split: str) -> list[Tagged]:
        words, tags = (table.column(self.columns[ours]).to_pylist() for ours in self.needed)
        numbers = self._numbers(table, "tags")
        return [
            self._row(row, own, given, numbers, split) for row, (own, given) in enumerate(zip(words, tags, strict=True))
        ]

    def _row(self, row: int, words: Any, tags: Any, numbers: Mapping[Any, int], split: str) -> Tagged:
        where = f"row {row} of {split}"
        if not (isinstance(words, list) and isinstance(tags, list) and words):
            raise UserError(f"{self.key}: {where} has no list of words and of tags", "choose other columns")
        if len(words) != len(tags):
            raise UserError(f"{self.key}: {where} has {len(words)} words and {len(tags)} tags", "mend the row")
        for word in words:
            self._check_text(word, "words", row, split)
        if unseen := [tag for tag in tags if tag not in numbers]:
            raise UserError(
                f"{self.key}.classes: {where} has the tag {unseen[0]!r}",
                f"name all tags, now {', '.join(self.task_type.classes)}",
            )
        return Tagged(words, [numbers[tag] for tag in tags])
