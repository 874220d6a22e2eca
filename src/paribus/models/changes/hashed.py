"""Attention among tokens with the same hash (Reformer, arXiv 2001.04451, section 2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.models.attention_part import AttentionPart, Rows
from paribus.models.change import Change

if TYPE_CHECKING:
    from paribus.models.bert import Bert


@dataclass(frozen=True)
class Hashed(Change):
    """A token sees the tokens that are in its bucket in one of the `rounds`, and itself.

    The bucket is the largest of the state's products with buckets / 2 random directions and their opposites. Directions
    differ between layers, heads and rounds and follow from `seed`; Reformer draws them anew in each step. Buckets are
    not cut into chunks: all tokens of one see each other. Reformer has one projection for queries and keys: add the
    change `shared_key`. Scores are computed for all pairs; costs are those of the pairs that are seen if all buckets
    have the same size. Raises UserError for an odd number of buckets.
    """

    buckets: int = field(default=8, metadata=within(2, 10**5))
    rounds: int = field(default=2, metadata=within(1, 64))
    seed: int = 0
    sets: ClassVar[frozenset[str]] = frozenset({"visibility"})
    exact_at_places: ClassVar[bool] = True

    def check(self, shape: Bert) -> None:
        if self.buckets < 2 or self.buckets % 2:
            raise UserError(f"hashing has buckets={self.buckets}, not an even number", "set buckets=8")
        if self.rounds < 1:
            raise UserError(f"hashing has rounds={self.rounds}, below 1", "set rounds=2")

    def attention(self, shape: Bert, layer: int) -> AttentionPart:
        return HashedPart(self, shape.heads, shape.key_size, shape.attention_of(layer))

    def seen(self, shape: Bert, length: float) -> float:
        keys = length if shape.attention == "full" else (length + 1) / 2
        return 1 + (keys - 1) * (1 - (1 - 1 / self.buckets) ** self.rounds)

    def forward_flops(self, shape: Bert, tokens: float, length: float) -> float:
        """The products with the directions, of queries and of keys."""
        return 2.0 * tokens * shape.layers * shape.heads * shape.key_size * self.rounds * self.buckets

    def lacks_class(self, shape: Bert) -> str | None:
        return "Reformer in transformers has reversible layers and draws its hashes anew"


class HashedPart(AttentionPart):
    direction_HERN: Tensor

    def __init__(self, hashed: Hashed, heads: int, width: int, layer: int) -> None:
        from paribus.models.network import named_generator

        super().__init__()
        draw = named_generator(hashed.seed, f"hashed.{layer}")
        direction = torch.randn(heads, width, hashed.rounds, hashed.buckets // 2, generator=draw)
        self.register_buffer("direction_HERN", direction, persistent=False)

    def find_buckets(self, state_BHLE: Tensor) -> Tensor:
        """int64 [B, H, L, R]"""
        product = torch.einsum("bhle,hern->bhlrn", state_BHLE.float(), self.direction_HERN)
        return torch.cat([product, -product], -1).argmax(-1)

    def visible_in(self, rows: Rows, place_Q: Tensor, place_K: Tensor) -> Tensor:
        query_BHQR, key_BHKR = self.find_buckets(rows.query), self.find_buckets(rows.key)
        shown = (place_Q[:, :, None] == place_K[:, None, :])[:, None]
        for query_BHQ, key_BHK in zip(query_BHQR.unbind(-1), key_BHKR.unbind(-1), strict=True):
            shown = shown | (query_BHQ[..., None] == key_BHK[:, :, None, :])
        return shown
