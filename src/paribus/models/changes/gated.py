"""Feed-forward layers with a gate (GLU Variants Improve Transformer, arXiv 2002.05202, section 2)."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

from torch import Tensor, nn
from transformers.activations import ACT2FN

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.models.change import Change

if TYPE_CHECKING:
    from paribus.models.bert import Bert
    from paribus.models.encoder import Encoder

KINDS: Final = {  # {kind: the activation of its gate in `transformers`}
    "glu": "sigmoid",
    "bilinear": "linear",
    "reglu": "relu",
    "geglu": "gelu",
    "swiglu": "silu",
}


@dataclass(frozen=True)
class Gated(Change):
    """activation(x W) * (x V) in place of GELU(x W), and then the projection back to the width of the states.

    `kind` says which activation: of `glu` the sigmoid, of `bilinear` none, of `reglu`, `geglu` and `swiglu` ReLU, exact
    GELU and SiLU. `width` is that of each of the two projections; null is 2/3 of model.intermediate, with which the
    three matrices have as many weights as the two of BERT. W and V are one matrix, W first. Projections have
    biases, as BERT's do and the paper's do not: there are `width` / 2 more of them in a layer than in BERT's.

    Raises UserError for an unknown kind, and for a width that is not a positive whole number.
    """

    kind: str = "geglu"
    width: int | None = field(default=None, metadata=within(1, 10**6))
    sets: ClassVar[Set[str]] = frozenset({"feed-forward layers"})
    exact_at_places: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UserError(f"a gated feed-forward layer has unknown kind={self.kind}", f"use {', '.join(KINDS)}")

    def check(self, shape: Bert) -> None:
        if self.width is None and 2 * shape.intermediate % 3:
            cause = f"{self.kind} is 2/3 as wide as model.intermediate={shape.intermediate}, which is no whole number"
            nearest = max(3, round(shape.intermediate / 3) * 3)
            raise UserError(cause, f"set model.intermediate={nearest}, or the change's width")
        if self.width is not None and (not isinstance(self.width, int) or self.width < 1):
            raise UserError(f"{self.kind} has width={self.width}", "give a whole number above 0")

    def alter(self, encoder: Encoder) -> None:
        hidden, width = encoder.spec.hidden, self.width_in(encoder.spec)
        for layer in encoder.backbone.encoder.layer:
            layer.intermediate.dense = nn.Linear(hidden, 2 * width)
            layer.intermediate.intermediate_act_fn = Gate(self.kind)
            layer.output.dense = nn.Linear(width, hidden)

    def width_in(self, shape: Bert) -> int:
        return 2 * shape.intermediate // 3 if self.width is None else self.width

    def forward_flops(self, shape: Bert, tokens: float, length: float) -> float:
        return 2.0 * tokens * shape.layers * shape.hidden * (3 * self.width_in(shape) - 2 * shape.intermediate)


class Gate(nn.Module):
    """[..., 2 W], x W beside x V, to [..., W]."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.activation = ACT2FN[KINDS[kind]]

    def forward(self, projected: Tensor) -> Tensor:
        gate, value = projected.chunk(2, -1)
        gated: Tensor = self.activation(gate) * value
        return gated
