"""Heavier residuals and smaller initial weights for deep post-LN encoders (DeepNet, arXiv 2203.00555)."""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from torch import Tensor, nn

from paribus.core.errors import UserError
from paribus.models.change import Change

if TYPE_CHECKING:
    from paribus.models.bert import Bert
    from paribus.models.encoder import Encoder

SMALLER: Final = re.compile(r"\.layer\.\d+\..*(value|dense)\.weight$")  # all matrices of a layer but query and key


@dataclass(frozen=True)
class DeepNorm(Change):
    """LayerNorm(alpha x + sublayer(x)) with alpha = (2 layers)^(1/4), the paper's for an encoder alone.

    Weights of values, of the projection after attention and of feed-forward layers begin at
    beta = (8 layers)^(-1/4) of model.initializer_range, as the authors' code (torchscale) has it; in the paper, beta is
    the gain of Xavier's initial weights. Raises UserError for a pre-LN encoder.
    """

    sets: ClassVar[Set[str]] = frozenset({"initial weights", "residual sums"})
    exact_at_places: ClassVar[bool] = True

    def check(self, shape: Bert) -> None:
        if shape.norm != "post":
            raise UserError(f"deepnorm is a kind of post-LN, but model.norm={shape.norm}", "set model.norm=post")

    def alter(self, encoder: Encoder) -> None:
        alpha = (2 * encoder.spec.layers) ** 0.25
        for layer in encoder.backbone.encoder.layer:
            layer.attention.output = DeepNormOutput(layer.attention.output, alpha)
            layer.output = DeepNormOutput(layer.output, alpha)

    def std(self, shape: Bert, name: str) -> float | None:
        return shape.initializer_range * (8 * shape.layers) ** -0.25 if SMALLER.search(name) else None


class DeepNormOutput(nn.Module):
    """The end of a sublayer."""

    def __init__(self, output: Any, alpha: float) -> None:
        super().__init__()
        self.dense, self.dropout, self.LayerNorm, self.alpha = output.dense, output.dropout, output.LayerNorm, alpha

    def forward(self, state_BLD: Tensor, input_BLD: Tensor) -> Tensor:
        normed_BLD: Tensor = self.LayerNorm(self.alpha * input_BLD + self.dropout(self.dense(state_BLD)))
        return normed_BLD
