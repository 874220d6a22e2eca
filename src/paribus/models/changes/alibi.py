"""Scores that fall linearly with the distance (ALiBi, arXiv 2108.12409, section 3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from paribus.models.attention_part import AttentionPart
from paribus.models.change import Positions
from paribus.models.positions import find_distances

if TYPE_CHECKING:
    from paribus.models.bert import Bert


@dataclass(frozen=True)
class Alibi(Positions):
    """Each head subtracts slope x distance from its scores; nothing is learned.

    The slopes of H heads are 2^(-8h / H) for h = 1 ... H. If H is no power of two, they are those of the power below
    and every second one of the power above, as in the authors' code. The paper is about left-to-right models. A model
    that sees both sides has the symmetric form that the authors describe (issue 5 of their repository,
    `ofirpress/attention_with_linear_biases`): a token knows how far others are from it, but not on which side.
    """

    def attention(self, shape: Bert, layer: int) -> AttentionPart:
        return AlibiPart(find_slopes(shape.heads))


def find_slopes(heads: int) -> list[float]:
    """The slope of each head."""
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * head / power) for head in range(1, power + 1)]
    between = [2 ** (-4 * head / power) for head in range(1, 2 * power + 1, 2)]
    return slopes + between[: heads - power]


class AlibiPart(AttentionPart):
    """`slopes`: one for each head."""

    slope_H: Tensor
    any_places = True

    def __init__(self, slopes: list[float]) -> None:
        super().__init__()
        self.register_buffer("slope_H", torch.tensor(slopes), persistent=False)

    def score(self, query: Tensor, key: Tensor, place_Q: Tensor, place_K: Tensor) -> Tensor:
        away_B1QK = find_distances(place_Q, place_K).abs()[:, None]
        return -self.slope_H[:, None, None] * away_B1QK
