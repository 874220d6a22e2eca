"""A second norm at the end of each sublayer (Sandwich-LN: CogView, arXiv 2105.13290)."""

from __future__ import annotations

import copy
from collections.abc import Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn

from paribus.core.errors import UserError
from paribus.models.change import Change

if TYPE_CHECKING:
    from paribus.models.bert import Bert
    from paribus.models.encoder import Encoder


@dataclass(frozen=True)
class Sandwich(Change):
    """x + norm(sublayer(norm(x))): pre-LN with one more norm, of the same kind, after the dropout of each sublayer.

    Raises UserError for a post-LN encoder.
    """

    sets: ClassVar[Set[str]] = frozenset({"residual sums"})
    exact_at_places: ClassVar[bool] = True

    def check(self, shape: Bert) -> None:
        if shape.norm != "pre":
            raise UserError(f"sandwich adds norms to pre-LN, but model.norm={shape.norm}", "set model.norm=pre")

    def alter(self, encoder: Encoder) -> None:
        for layer in encoder.backbone.encoder.layer:
            layer.attention.output = SandwichOutput(layer.attention.output, layer.attention.LayerNorm)
            layer.output = SandwichOutput(layer.output, layer.intermediate.LayerNorm)


class SandwichOutput(nn.Module):
    """The end of a sublayer."""

    def __init__(self, output: Any, norm: nn.Module) -> None:
        super().__init__()
        self.dense, self.dropout, self.LayerNorm = output.dense, output.dropout, copy.deepcopy(norm)

    def forward(self, state_BLD: Tensor, input_BLD: Tensor) -> Tensor:
        normed_BLD: Tensor = self.LayerNorm(self.dropout(self.dense(state_BLD)))
        return input_BLD + normed_BLD
