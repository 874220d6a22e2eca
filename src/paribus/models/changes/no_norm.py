"""An encoder without norms."""

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
class NoNorm(Change):
    """States stay as they are where the encoder has a LayerNorm. Without norms, post-LN and pre-LN are the same."""

    sets: ClassVar[Set[str]] = frozenset({"norms", "residual sums"})
    exact_at_places: ClassVar[bool] = True

    def alter(self, encoder: Encoder) -> None:
        replace_norms(encoder, lambda _: nn.Identity())
