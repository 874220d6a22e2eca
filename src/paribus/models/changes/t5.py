"""A learned score for each head and bucket of distances (T5, arXiv 1910.10683, section 2.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.models.attention_part import AttentionPart
from paribus.models.change import Positions
from paribus.models.positions import find_distances

if TYPE_CHECKING:
    from paribus.models.bert import Bert


@dataclass(frozen=True)
class T5Buckets(Positions):
    """T5's relative positions: one scalar for each head and bucket is added to the scores, in all layers the same.

    Half of the buckets of a side are single distances. The others grow logarithmically up to the distance `most`; what
    is farther is in the last. A model that sees both sides has half of the buckets for each, one that sees one side all
    of them for that side. T5's missing division of the scores is not part of this. Raises UserError for settings
    without logarithmic buckets.
    """

    buckets: int = field(default=32, metadata=within(4, 10**6))
    most: int = field(default=128, metadata=within(2, 10**6))
    one_part: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.buckets < 4 or self.buckets % 4:
            cause = f"model.changes.position.buckets={self.buckets} is not a multiple of 4"
            raise UserError(cause, "give 32, T5's")
        if self.most <= self.buckets // 2:
            cause = f"model.changes.position.most={self.most} leaves no logarithmic buckets"
            raise UserError(cause, f"give more than {self.buckets // 2}, as T5's 128")

    def attention(self, shape: Bert, layer: int) -> AttentionPart:
        return BucketPart(self.buckets, self.most, shape.heads, shape.attention)


class BucketPart(AttentionPart):
    """`sides`: the model's attention; "full" for both."""

    any_places = True

    def __init__(self, buckets: int, most: int, heads: int, sides: str) -> None:
        super().__init__()
        self.buckets, self.most, self.sides = buckets, most, sides
        self.score_RH = nn.Parameter(torch.empty(buckets, heads))

    def find_buckets(self, distance: Tensor) -> Tensor:
        """The bucket of each distance of a key to the right of its query."""
        per_side, first = self.buckets, torch.zeros_like(distance)
        if self.sides == "full":
            per_side //= 2
            first = (distance > 0) * per_side
            away = distance.abs()
        else:
            away = (distance if self.sides == "right" else -distance).clamp(min=0)
        exact = per_side // 2
        share = (away.clamp(min=exact) / exact).log() / math.log(self.most / exact)
        logarithmic = (exact + (share * (per_side - exact)).long()).clamp(max=per_side - 1)
        return first + torch.where(away < exact, away, logarithmic)

    def score(self, query: Tensor, key: Tensor, place_Q: Tensor, place_K: Tensor) -> Tensor:
        bucket_BQK = self.find_buckets(find_distances(place_Q, place_K))
        return self.score_RH[bucket_BQK].permute(0, 3, 1, 2)
