"""Adapters: small bottlenecks put into a frozen encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.finetuning.method import Method

if TYPE_CHECKING:
    from paribus.models.network import Network

PLACES = ("attention", "ffn")
ACTIVATIONS = ("gelu", "relu")


@dataclass(frozen=True)
class Adapters(Method):
    """x + up(activation(down(x))) after a sublayer's projection and dropout, before the residual sum and its LayerNorm.

    Houlsby et al. (arXiv 1902.00751, section 2.1): two per layer, initially close to the identity. Only adapters and
    LayerNorms are trained. T5 (arXiv 1910.10683, section 3.5.1) has them after the feed-forward networks of encoder
    and decoder alone, with `relu`. Layers that share weights share their adapters.

    Attributes:
        size: width of the bottleneck.
        std: of the truncated normal that weights start from; biases start at 0.
        after: the sublayers that are followed by one.
        depth: which layers have them, as shares of the depth counted from the bottom: [0.5, 1] is the upper half.
            Layers that share weights count as the lowest of them.

    Raises UserError for unknown names, sizes below 1, and a depth without a layer.
    """

    size: int = field(default=64, metadata=within(1, 10**9))
    std: float = 1e-3
    after: Sequence[str] = PLACES
    activation: str = "gelu"
    depth: Sequence[float] = (0.0, 1.0)
    semantics: ClassVar[int] = 1
    enters_layers: ClassVar[bool] = True
    unset_values: ClassVar[Mapping[str, Any]] = {"depth": [0.0, 1.0]}

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
        if len(self.depth) != 2 or not 0 <= self.depth[0] < self.depth[1] <= 1:
            cause = f"finetune.method.depth={list(self.depth)} is not a part of the depth"
            raise UserError(cause, "give two shares from 0 to 1, such as [0.5, 1]")

    def check(self, layers: int) -> None:
        if not any(self.covers(layer, layers) for layer in range(layers)):
            cause = f"finetune.method.depth={list(self.depth)} holds none of the model's {layers} layers"
            raise UserError(cause, "give a wider part, such as [0.5, 1]")

    def check_network(self, encoder: Network) -> None:
        kind, places = type(encoder).__name__, {place for place, _ in encoder.sublayers()}
        if absent := sorted(set(self.after) - places):
            cause = f"finetune.method.after has {absent[0]}, but sublayers of {kind} names {sorted(places) or 'none'}"
            mend = f"set finetune.method.after=[{','.join(sorted(places))}]" if places else f"write {kind}.sublayers"
            raise UserError(cause, f"{mend}, or set finetune/method=full")
        encoder.require_depths("finetune/method=adapters", "set finetune/method=full")

    def covers(self, layer: int, layers: int) -> bool:
        """Whether a layer (0: the lowest) of this many has adapters: its middle lies in `depth`."""
        return self.depth[0] <= (layer + 0.5) / layers <= self.depth[1]

    def shape(self, encoder: Network, seed: int) -> None:
        from paribus.finetuning.bottleneck import Adapted, initialize_adapters

        sublayers = list(encoder.sublayers())  # a list, since modules are added on the way
        if absent := sorted(set(self.after) - {place for place, _ in sublayers}):
            cause = f"finetune.method.after has {absent[0]}, but the layers of the model have none"
            raise UserError(cause, f"set finetune.method.after=[{','.join(sorted({place for place, _ in sublayers}))}]")
        encoder.requires_grad_(False)
        for norm in encoder.norms():
            norm.requires_grad_(True)
        names = {module: name for name, module in encoder.named_modules()}
        for place, sublayer in sublayers:
            layer = encoder.depth_of(f"{names[sublayer]}.dropout") - 1
            chosen = place in self.after and self.covers(layer, encoder.depth)
            if chosen and not isinstance(sublayer.dropout, Adapted):  # layers that share weights have one already
                sublayer.dropout = Adapted(sublayer.dropout, encoder.spec.hidden, self.size, self.activation)
        encoder.restore_sharing()
        initialize_adapters(encoder, seed, self.std)
