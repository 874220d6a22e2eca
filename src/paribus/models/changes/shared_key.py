"""Queries that are their own keys, from one projection (Reformer, arXiv 2001.04451, section 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import torch
from torch import Tensor, nn

from paribus.models.attention_part import AttentionPart
from paribus.models.change import Change

if TYPE_CHECKING:
    from paribus.models.bert import Bert
    from paribus.models.encoder import Encoder

HIDDEN: Final = -1e5  # Reformer's: a token that sees no other still sees itself


@dataclass(frozen=True)
class SharedKey(Change):
    """One projection for queries and keys, which saves hidden^2 weights per layer (with heads of their usual width).

    A token's score with itself is then the largest of its row. Reformer's remedies: `normalize` gives all keys the same
    length, and with `diagonal=false` a token sees itself only if it sees no other.
    """

    normalize: bool = True
    diagonal: bool = False
    sets: ClassVar[frozenset[str]] = frozenset({"queries"})
    exact_at_places: ClassVar[bool] = True

    def alter(self, encoder: Encoder) -> None:
        for layer in encoder.backbone.encoder.layer:
            layer.attention.self.query = NoQuery(encoder.spec.heads * encoder.spec.key_size)

    def attention(self, shape: Bert, layer: int) -> AttentionPart:
        return SharedKeyPart(self.normalize, self.diagonal)

    def forward_flops(self, shape: Bert, tokens: float, length: float) -> float:
        return -2.0 * tokens * shape.layers * shape.hidden * shape.heads * shape.key_size


class NoQuery(nn.Module):
    """In place of the projection to queries: zeros, which cost nothing."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, state_BLD: Tensor) -> Tensor:
        return state_BLD.new_zeros(()).expand(*state_BLD.shape[:-1], self.width)


class SharedKeyPart(AttentionPart):
    """Queries are the keys at their places."""

    turn_order = 0
    any_places = True

    def __init__(self, normalize: bool, diagonal: bool) -> None:
        super().__init__()
        self.normalize, self.diagonal = normalize, diagonal

    def turn(self, query: Tensor, key: Tensor, place_Q: Tensor, place_K: Tensor) -> tuple[Tensor, Tensor]:
        index_BHQE = place_Q[:, None, :, None].expand(len(key), key.shape[1], -1, key.shape[3])
        query = key if place_Q is place_K else key.gather(2, index_BHQE)
        return query, nn.functional.rms_norm(key, key.shape[-1:], eps=1e-6) if self.normalize else key

    def score(self, query: Tensor, key: Tensor, place_Q: Tensor, place_K: Tensor) -> Tensor | None:
        if self.diagonal:
            return None
        itself_B1QK = place_Q[:, None, :, None] == place_K[:, None, None, :]
        return torch.zeros(itself_B1QK.shape, device=key.device).masked_fill_(itself_B1QK, HIDDEN)
