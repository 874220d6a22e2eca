"""A learned table of positions for every layer (Al-Rfou et al., arXiv 1808.04444)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import nn

from paribus.models.change import Positions

if TYPE_CHECKING:
    from paribus.models.encoder import Encoder


@dataclass(frozen=True)
class LearnedLayers(Positions):
    """A learned vector for each position and layer, added to what the layer reads, in place of BERT's one table.

    Layers that share their weights still have tables of their own.
    """

    @property
    def at_layers(self) -> bool:
        return True

    def alter(self, encoder: Encoder) -> None:
        super().alter(encoder)
        shape = encoder.spec
        for layer in encoder.backbone.encoder.layer:
            layer.position_table = nn.Embedding(shape.positions, shape.hidden)
            layer.register_forward_pre_hook(_add_positions)


def _add_positions(layer: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
    state_BLD, *rest = given
    return (state_BLD + layer.position_table.weight[: state_BLD.shape[1]].to(state_BLD.dtype), *rest)
