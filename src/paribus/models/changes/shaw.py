"""Learned vectors of distances, added to keys and values (Shaw et al., arXiv 1803.02155, section 3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.models.attention_part import AttentionPart
from paribus.models.change import Positions
from paribus.models.positions import find_distances, look_up

if TYPE_CHECKING:
    from paribus.models.bert import Bert


@dataclass(frozen=True)
class Shaw(Positions):
    """A vector for each distance of a key to a query, clipped to `most` on both sides: 2 most + 1 vectors per layer,
    which its heads share.

    With `keys` they are added to the keys (equation 2 of the paper), with `values` to the values (equation 1). Raises
    UserError if they are added to neither.
    """

    most: int = field(default=16, metadata=within(1, 10**6))
    keys: bool = True
    values: bool = True

    def __post_init__(self) -> None:
        if self.most < 1:
            raise UserError(f"model.changes.position.most={self.most} is below 1", "give 16, the paper's")
        if not (self.keys or self.values):
            raise UserError("model/position=shaw adds to neither keys nor values", "set keys=true or values=true")

    def attention(self, shape: Bert, layer: int) -> AttentionPart:
        part = ShawPart if self.values else ShawKeyPart
        return part(self.most, shape.key_size if self.keys else None, shape.value_size)

    def forward_flops(self, shape: Bert, tokens: float, length: float) -> float:
        """Every query is multiplied by all vectors, and so are the summed weights of every query's values."""
        width = self.keys * shape.key_size + self.values * shape.value_size
        return tokens * shape.layers * 2.0 * (2 * self.most + 1) * shape.heads * width


class ShawKeyPart(AttentionPart):
    """Adds to keys of width `key`, if there is one."""

    any_places = True

    def __init__(self, most: int, key: int | None, value: int) -> None:
        super().__init__()
        self.most = most
        self.of_key_RE = None if key is None else nn.Parameter(torch.empty(2 * most + 1, key))

    def clip(self, place_Q: Tensor, place_K: Tensor) -> Tensor:
        """[B or 1, Q, K]: which vector belongs to a query and a key."""
        return find_distances(place_Q, place_K).clamp(-self.most, self.most) + self.most

    def score(self, query: Tensor, key: Tensor, place_Q: Tensor, place_K: Tensor) -> Tensor | None:
        if self.of_key_RE is None:
            return None
        return look_up(query @ self.of_key_RE.T.to(query.dtype), self.clip(place_Q, place_K))


class ShawPart(ShawKeyPart):
    """Adds to values too, of width `value`."""

    def __init__(self, most: int, key: int | None, value: int) -> None:
        super().__init__(most, key, value)
        self.of_value_RE = nn.Parameter(torch.empty(2 * most + 1, value))

    def read(self, share_BHQK: Tensor, place_Q: Tensor, place_K: Tensor) -> Tensor:
        """Keys at one clipped distance have one vector, so that their weights are summed first."""
        index_BHQK = self.clip(place_Q, place_K)[:, None].expand(share_BHQK.shape)
        share_BHQR = share_BHQK.new_zeros(*share_BHQK.shape[:3], 2 * self.most + 1)
        return share_BHQR.scatter_add(3, index_BHQK, share_BHQK) @ self.of_value_RE.to(share_BHQK.dtype)
