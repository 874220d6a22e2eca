"""Disentangled attention (DeBERTa, arXiv 2006.03654, section 3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

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
class Disentangled(Positions):
    """A token's content and its position are vectors of their own, whose products are added in the scores.

    All layers share one table with a vector for each distance of a query to the right of a key, clipped to -most ...
    most - 1; a `most` of null is `model.positions`. Each layer projects it to keys, which queries read
    (`content_to_position`), and to queries, which keys read (`position_to_content`). Scores are divided by the root of
    the width of a key times the number of their terms, 3 with both (equation 4). Where the authors' code has no bias,
    in the projection to keys, BERT's stays. Raises UserError if both terms are off.
    """

    content_to_position: bool = True
    position_to_content: bool = True
    most: int | None = field(default=None, metadata=within(1, 10**6))
    sets: ClassVar[frozenset[str]] = frozenset({"positions", "scale of scores"})

    def __post_init__(self) -> None:
        if not (self.content_to_position or self.position_to_content):
            cause = "model/position=disentangled has neither content_to_position nor position_to_content"
            raise UserError(cause, "set one of them to true, or model/position=none")
        if self.most is not None and self.most < 1:
            raise UserError(f"model.changes.position.most={self.most} is below 1", "give a distance, or null")

    def attention(self, shape: Bert, layer: int) -> AttentionPart:
        terms = self.content_to_position, self.position_to_content
        return DisentangledPart(shape, self.most or shape.positions, *terms)

    def score_scale(self, shape: Bert) -> float:
        return float(((1 + self.content_to_position + self.position_to_content) * shape.key_size) ** -0.5)

    def tie(self, parts: Sequence[AttentionPart]) -> None:
        for part in parts:
            part.table_RD = parts[0].table_RD

    def forward_flops(self, shape: Bert, tokens: float, length: float) -> float:
        """Queries, and keys, are multiplied by every distance of a row. The projections of the table are left out: they
        are done once per batch, whatever its number of rows.
        """
        distances = min(2 * (self.most or shape.positions), 2 * length - 1)
        terms = self.content_to_position + self.position_to_content
        return tokens * shape.layers * terms * 2.0 * distances * shape.heads * shape.key_size


class DisentangledPart(AttentionPart):
    """`table_RD` holds the distances of a query to the right of a key, from -most to most - 1."""

    def __init__(self, shape: Bert, most: int, to_position: bool, to_content: bool) -> None:
        super().__init__()
        width = shape.heads * shape.key_size
        self.heads, self.most, self.scale = shape.heads, most, shape.score_scale
        self.table_RD = nn.Parameter(torch.empty(2 * most, shape.hidden))
        self.key = nn.Linear(shape.hidden, width, bias=False) if to_position else None
        self.query = nn.Linear(shape.hidden, width) if to_content else None
        self.dropout = nn.Dropout(shape.dropout)

    def score(self, query: Tensor, key: Tensor, place_Q: Tensor, place_K: Tensor) -> Tensor:
        """Of the table only the distances of a row are projected. Queries come scaled."""
        farthest = min(key.shape[2] - 1, self.most)
        first, last = self.most - farthest, min(self.most + farthest, 2 * self.most - 1)
        table_RD = self.dropout(self.table_RD[first : last + 1])
        index_BQK = (-find_distances(place_Q, place_K)).clamp(-farthest, last - self.most) + farthest
        score = torch.zeros((), dtype=query.dtype, device=query.device)
        if self.key is not None:
            score = score + look_up(query @ self._by_head(self.key(table_RD), query), index_BQK)
        if self.query is not None:
            by_key_BHKR = key @ self._by_head(self.query(table_RD) * self.scale, query)
            score = score + look_up(by_key_BHKR, index_BQK.transpose(1, 2)).transpose(2, 3)
        return score

    def _by_head(self, state_RD: Tensor, like: Tensor) -> Tensor:
        """[H, E, R]"""
        return state_RD.view(len(state_RD), self.heads, -1).permute(1, 2, 0).to(like.dtype)
