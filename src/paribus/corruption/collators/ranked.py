"""Arrays of an encoder whose rows are read under attention masks of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from paribus.corruption.collators.encoder import Encoder
from paribus.corruption.views.mixed_attention import KINDS, shares
from paribus.data.text import Array, Arrays, Text, Views


@dataclass(frozen=True)
class Ranked(Encoder):
    """As an encoder's, and rank_BL: a place sees those of a rank not above its own."""

    semantics: ClassVar[int] = 1

    def pack(self, views: Views, vocabulary: Any) -> Arrays:
        """`Encoder.pack`, rank_BL, and the rows of each kind under counts."""
        arrays, read = super().pack(views, vocabulary), cast("Text", views.inputs)
        rank_BL = cast("Array", read.rank_BL)
        return {**arrays, "rank_BL": rank_BL, "counts": {**arrays["counts"], **shares(rank_BL)}}

    def rates(self, counts: Mapping[str, int]) -> dict[str, float]:
        """`Encoder.rates`, and the share of rows of each kind."""
        rows = max(counts["sequences"], 1)
        return {**super().rates(counts), **{kind: counts[kind] / rows for kind in KINDS}}
