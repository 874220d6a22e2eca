"""What a change of an encoder does inside the attention of one layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn


class AttentionPart(nn.Module):
    """One change of one layer's attention: a subclass overrides what it changes, and may have weights.

    `place_Q` [B or 1, Q] and `place_K` [1, K] are the places of queries and keys in their rows. Keys are at 0, 1, ...
    K - 1. There may be fewer queries, at any places: those that heads read.

    Attributes:
        turn_order: turns go from low to high, equal ones by the names of their changes: 0 for projections, 1 for norms,
            2 for positions, 3 for lengths.
        initial_values: {name of a parameter: the number that fills it}; others are drawn, see `initialize`.
    """

    turn_order: ClassVar[int] = 1
    initial_values: ClassVar[Mapping[str, float]] = {}

    def turn(self, query: Tensor, key: Tensor, place_Q: Tensor, place_K: Tensor) -> tuple[Tensor, Tensor]:
        """Changed queries [B, H, Q, E] and keys [B, H, K, E]."""
        return query, key

    def turn_scaled(
        self, query: Tensor, key: Tensor, place_Q: Tensor, place_K: Tensor, scale: float
    ) -> tuple[Tensor, Tensor]:
        """As `turn`, with queries times `scale`. Override it if both are cheaper in one step."""
        query, key = self.turn(query, key, place_Q, place_K)
        return query * scale, key

    def score(self, query: Tensor, key: Tensor, place_Q: Tensor, place_K: Tensor) -> Tensor | None:
        """What is added to the scores, [B or 1, H or 1, Q, K]. Queries and keys have gone through all turns, and their
        products are the scaled scores.
        """
        return None

    def visible(self, place_Q: Tensor, place_K: Tensor) -> Tensor | None:
        """bool [B or 1, H or 1, Q, K]: which keys a query may see, besides padding; None for all.

        In every row that ends at its place, a query must see itself or a key before it: a query that sees nothing would
        read all keys alike. An encoder whose parts together hide more is refused when it is built.
        """
        return None

    def share(self, score_BHQK: Tensor) -> Tensor:
        """The weights of the values. Hidden keys have the lowest score that their type has."""
        return torch.softmax(score_BHQK, -1)

    def read(self, share_BHQK: Tensor, place_Q: Tensor, place_K: Tensor) -> Tensor | None:
        """What is added to the values that are read, [B, H, Q, E]."""
        return None

    @property
    def replaces_softmax(self) -> bool:
        return type(self).share is not AttentionPart.share

    @property
    def needs_shares(self) -> bool:
        """Whether it works on the weights of the values, which fused attention does not give."""
        return self.replaces_softmax or type(self).read is not AttentionPart.read
