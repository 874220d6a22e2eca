"""What a change of an encoder does inside the attention of one layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn


class Rows(NamedTuple):
    """What decides who sees whom, beside places.

    Attributes:
        query, key: after all turns, [B, H, Q, E] and [B, H, K, E].
        first_B: int64, how many tokens stand before the second segment of a row; 0 if it has only one.
    """

    query: Tensor
    key: Tensor
    first_B: Tensor


class KeyBlocks(NamedTuple):
    """Which keys a part shows, as blocks of neighboring places: with it, attention costs what is seen.

    Attributes:
        size: how many places a block has. The last block of a row may be shorter.
        table_HNC: int64, numbers of the blocks that a block of queries reads; -1 for none. H is 1 if heads agree.
        count_HNC: how often each counts in the softmax, besides what `seers` count. None if every key that the part's
            `visible` shows inside of the blocks counts once.
    """

    size: int
    table_HNC: Tensor
    count_HNC: Tensor | None = None

    @property
    def width(self) -> int:
        """How many keys a query reads."""
        return self.size * self.table_HNC.shape[2]


class AttentionPart(nn.Module):
    """One change of one layer's attention: a subclass overrides what it changes, and may have weights.

    `place_Q` [B or 1, Q] and `place_K` [1, K] are the places of queries and keys in their rows. Keys are at 0, 1, ...
    K - 1. There may be fewer queries, at any places: those that heads read.

    Attributes:
        turn_order: turns go from low to high, equal ones by the names of their changes: 0 for projections, 1 for norms,
            2 for positions, 3 for lengths.
        any_places: whether `score` and `visible` take keys at any places too, `place_K` [B, K]. A part that scores or
            hides and does not keeps attention from being computed in blocks.
        own_projections: whether queries, keys and values come with as many heads again. Those serve the tokens of
            `seers`, and `turn` gets them too.
        initial_values: {name of a parameter: the number that fills it}; others are drawn, see `initialize`.
    """

    turn_order: ClassVar[int] = 1
    any_places: ClassVar[bool] = False
    own_projections: bool = False
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

    def visible_in(self, rows: Rows, place_Q: Tensor, place_K: Tensor) -> Tensor | None:
        """As `visible`, if it depends on more than places. Keys are at 0, 1, ... K - 1."""
        return self.visible(place_Q, place_K)

    def seers(self, rows: Rows) -> Tensor | None:
        """int64 [B or 1, G]: places of tokens that see all tokens and that all tokens see; -1 for none."""
        return None

    def blocks(self, length: int, device: torch.device) -> KeyBlocks | None:
        """The blocks that hold all that is visible in rows of this length, but for `seers`; None if it needs all."""
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
    def hides_or_scores(self) -> bool:
        return any(
            getattr(type(self), name) is not getattr(AttentionPart, name) for name in ("score", "visible", "visible_in")
        )

    @property
    def fits_blocks(self) -> bool:
        """Whether it can work on the blocks of keys that a part shows."""
        return self.leaves_scores or (self.any_places and not self.needs_shares)

    @property
    def leaves_scores(self) -> bool:
        """Whether it changes queries and keys alone."""
        return not self.hides_or_scores and not self.needs_shares

    @property
    def needs_shares(self) -> bool:
        """Whether it works on the weights of the values, which fused attention does not give."""
        return self.replaces_softmax or type(self).read is not AttentionPart.read
