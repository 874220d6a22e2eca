"""Scores that are not divided by the root of a key's width (T5, arXiv 1910.10683; its code folds the root into initial
weights).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from paribus.core.errors import UserError
from paribus.models.change import Change

if TYPE_CHECKING:
    from paribus.models.bert import Bert


@dataclass(frozen=True)
class Unscaled(Change):
    """Scores are the products of queries and keys as they are, whose variance grows with the width of a key (Vaswani et
    al., arXiv 1706.03762, section 3.2.1).

    With `fold=true` the initial weights of queries are smaller by the root of that width, as in T5: the network begins
    as the scaled one. Raises UserError for `fold` without weights of queries.
    """

    fold: bool = False
    sets: ClassVar[frozenset[str]] = frozenset({"scale of scores"})
    exact_at_places: ClassVar[bool] = True

    def check(self, shape: Bert) -> None:
        if self.fold and any("queries" in change.sets for change in shape.changes.values()):
            raise UserError("unscaled scores with fold=true need weights of queries", "set fold=false")

    def score_scale(self, shape: Bert) -> float:
        return 1.0

    def std(self, shape: Bert, name: str) -> float | None:
        folded = self.fold and name.endswith("attention.self.query.weight")
        return shape.initializer_range * shape.key_size**-0.5 if folded else None
