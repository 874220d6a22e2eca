"""Norms that do not subtract the mean (RMSNorm, arXiv 1910.07467)."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torch import nn

from paribus.models.change import Change
from paribus.models.norms import replace_norms

if TYPE_CHECKING:
    from paribus.models.encoder import Encoder


@dataclass(frozen=True)
class RmsNorm(Change):
    """x / root mean square of x, times a learned vector: a LayerNorm without its mean and without its bias."""

    sets: ClassVar[Set[str]] = frozenset({"norms"})
    exact_at_places: ClassVar[bool] = True

    def alter(self, encoder: Encoder) -> None:
        replace_norms(encoder, lambda norm: nn.RMSNorm(norm.normalized_shape, norm.eps))
