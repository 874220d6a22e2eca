"""Layers without a feed-forward layer."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor, nn

from paribus.models.change import Change

if TYPE_CHECKING:
    from paribus.models.bert import Bert
    from paribus.models.encoder import Encoder


@dataclass(frozen=True)
class NoFeedForward(Change):
    """Layers end with their attention, its residual sum and norm; `model.intermediate` has no effect."""

    sets: ClassVar[Set[str]] = frozenset({"feed-forward layers"})
    exact_at_places: ClassVar[bool] = True

    def alter(self, encoder: Encoder) -> None:
        for layer in encoder.backbone.encoder.layer:
            layer.intermediate, layer.output = nn.Identity(), NoSublayer()

    def forward_flops(self, shape: Bert, tokens: float, length: float) -> float:
        return -4.0 * tokens * shape.layers * shape.hidden * shape.intermediate


class NoSublayer(nn.Module):
    """The end of a sublayer that does nothing."""

    def forward(self, _: Tensor, input_BLD: Tensor) -> Tensor:
        return input_BLD
