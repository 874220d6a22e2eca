"""Norms that give all states one length (ScaleNorm, arXiv 1910.05895)."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import torch
from torch import Tensor, nn

from paribus.models.change import Change
from paribus.models.norms import Norm, replace_norms

if TYPE_CHECKING:
    from paribus.models.encoder import Encoder

SHORTEST: Final = 1e-5  # below this length a state is not stretched further, as in the authors' code


@dataclass(frozen=True)
class ScaleNorm(Change):
    """x / length of x, times one learned number for each norm, which begins at the root of the width."""

    sets: ClassVar[Set[str]] = frozenset({"norms"})
    exact_at_places: ClassVar[bool] = True

    def alter(self, encoder: Encoder) -> None:
        replace_norms(encoder, lambda norm: ScaleNormModule(norm.normalized_shape[0]))


class ScaleNormModule(Norm):
    """[..., D] to the same."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(1))
        self.initial_values = {"weight": width**0.5}

    def forward(self, state: Tensor) -> Tensor:
        length = state.float().norm(dim=-1, keepdim=True).clamp(min=SHORTEST)
        scaled: Tensor = state * (self.weight / length)
        return scaled
