"""Adapters: small bottlenecks put into a frozen encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from paribus.core.errors import UserError
from paribus.finetuning.method import Method

if TYPE_CHECKING:
    from paribus.models.network import Network

PLACES = ("attention", "ffn")
ACTIVATIONS = ("gelu", "relu")


@dataclass(frozen=True)
class Adapters(Method):
    """x + up(activation(down(x))) after a sublayer's projection and dropout, before the residual sum and its LayerNorm.

    Houlsby et al. (arXiv 1902.00751, section 2.1): two a layer, near the identity at first. Adapters and all LayerNorms
    move, nothing else. T5 (arXiv 1910.10683, section 3.5.1) has them after the feed-forward networks of encoder
    and decoder alone, with `relu`. Layers that share weights share their adapters.

    Attributes:
        size: width of the bottleneck.
        std: of the truncated normal that weights start from; biases start at 0.
        after: the sublayers that are followed by one.

    Raises UserError for unknown names and sizes below 1.
    """

    size: int = 64
    std: float = 1e-3
    after: Sequence[str] = PLACES
    activation: str = "gelu"
    semantics: ClassVar[int] = 1
    enters_layers: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.size < 1:
            raise UserError(
                f"finetune.method.size={self.size} is below 1", "give the width of the bottleneck, such as 64"
            )
        if self.std < 0:
            raise UserError(f"finetune.method.std={self.std} is negative", "use 1e-3")
        if not self.after or not set(self.after) <= set(PLACES):
            raise UserError(f"finetune.method.after={list(self.after)} is unknown", f"choose from {', '.join(PLACES)}")
        if self.activation not in ACTIVATIONS:
            raise UserError(
                f"finetune.method.activation={self.activation} is unknown", f"use {' or '.join(ACTIVATIONS)}"
            )

    def shape(self, encoder: Network, seed: int) -> None:
        from paribus.finetuning.bottleneck import Adapted, begin

        encoder.requires_grad_(False)
        for norm in encoder.norms():
            norm.requires_grad_(True)
        for place, sublayer in list(encoder.sublayers()):
            if place in self.after and not isinstance(sublayer.dropout, Adapted):
                sublayer.dropout = Adapted(sublayer.dropout, encoder.width, self.size, self.activation)
        encoder.share()
        begin(encoder, seed, self.std)
