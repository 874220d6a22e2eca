"""Another function between the two projections of the feed-forward layer."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from paribus.core.errors import UserError
from paribus.models.change import Change

if TYPE_CHECKING:
    from paribus.models.bert import Bert
    from paribus.models.encoder import Encoder

KINDS: Final = {  # our name: that in `transformers`
    "relu": "relu",
    "squared_relu": "relu2",
    "gelu_tanh": "gelu_pytorch_tanh",
    "gelu_sigmoid": "quick_gelu",
    "silu": "silu",
}


@dataclass(frozen=True)
class Activation(Change):
    """`kind` in place of BERT's exact GELU, x times the share of a normal distribution below x (arXiv 1606.08415).

    `gelu_tanh` and `gelu_sigmoid` are the approximations of section 2 there, the second x sigmoid(1.702 x); `silu` is
    x sigmoid(x); `squared_relu` is Primer's (arXiv 2109.08668). The head on tokens keeps its GELU.
    Raises UserError for an unknown kind.
    """

    kind: str = "relu"
    sets: ClassVar[Set[str]] = frozenset({"feed-forward layers"})
    exact_at_places: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            known = f"use {', '.join(KINDS)}; without the change it is the exact GELU"
            raise UserError(f"an activation has unknown kind={self.kind}", known)

    def alter(self, encoder: Encoder) -> None:
        from transformers.activations import ACT2FN

        encoder.backbone.config.hidden_act = KINDS[self.kind]
        for layer in encoder.backbone.encoder.layer:
            layer.intermediate.intermediate_act_fn = ACT2FN[KINDS[self.kind]]

    def lacks_class(self, shape: Bert) -> str | None:
        if shape.norm == "pre" and shape.table_width == shape.hidden:
            return None
        return "BERT in transformers has the activation of its layers in its head on tokens, too"
