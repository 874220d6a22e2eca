"""A ranking from a table with a row for each text and candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.hashing import digest
from paribus.tasks.examples import Choice, Example
from paribus.tasks.tables import LabelTable, Source
from paribus.tasks.types.ranking import Ranking

if TYPE_CHECKING:
    import pyarrow as pa


class RankingTable(LabelTable):
    """The rows of a text are its candidates; an example is one right candidate beside all wrong ones (see `TableTask`;
    limits count examples).

    Texts without a right or without a wrong candidate are left out with a message. The order of candidates follows
    from their hashes.

    Args:
        columns: `{text: ..., pair: ..., label: ...}`; `pair` holds the candidates.
        classes: see `LabelTable`; `right` is the class of right candidates.
    """

    semantics = 1
    required = ("text", "pair", "label")
    optional = ()

    def __init__(
        self,
        name: str,
        columns: Mapping[str, str],
        classes: Sequence[str],
        right: str,
        metrics: Sequence[str] = ("accuracy",),
        **source: Unpack[Source],
    ) -> None:
        super().__init__(name, columns, classes, **source)
        self.task_type = Ranking(tuple(classes), tuple(metrics))
        self.task_type.check(self.key)
        if right not in classes:
            raise UserError(f"{self.key}.right={right} is not a class", f"name one of {', '.join(classes)}")
        self.right = right

    def _settings(self) -> list[Any]:
        return [*super()._settings(), self.right]

    def _read_rows(self, table: pa.Table, split: str) -> list[Any]:
        rows, right = super()._read_rows(table, split), self.task_type.classes.index(self.right)
        found = group_candidates(rows, right)
        texts = {row.text for row in rows}
        if dropped := len(texts - {example.text for example in found}):
            say(f"task {self.name}: {dropped} of {len(texts)} texts of {split} have no right or no wrong candidate")
        return found


def group_candidates(rows: Sequence[Example], right: int) -> list[Choice]:
    """An example for each right candidate, in the order of the rows."""
    groups: dict[str, dict[str, bool]] = {}
    for row in rows:
        groups.setdefault(row.text, {})[str(row.pair)] = row.label == right
    found = []
    for text, candidates in groups.items():
        wrong = [candidate for candidate, is_right in candidates.items() if not is_right]
        for own in (candidate for candidate, is_right in candidates.items() if is_right and wrong):
            ordered = sorted([own, *wrong], key=digest)
            found.append(Choice(text, None, ordered, ordered.index(own)))
    return found
