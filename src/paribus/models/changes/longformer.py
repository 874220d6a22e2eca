"""A window, and tokens that see all and that all see (Longformer, arXiv 2004.05150, section 3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn

from paribus.core.errors import UserError
from paribus.models.attention_part import AttentionPart, Rows
from paribus.models.changes.window import Window, WindowPart

if TYPE_CHECKING:
    from paribus.models.bert import Bert
    from paribus.models.encoder import Encoder

SEGMENT = "segment"


@dataclass(frozen=True)
class Longformer(Window):
    """A window as in `Window`, and global tokens: the first `tokens` of a row, or those of its first segment.

    `tokens="segment"` is what Longformer has for questions; in a row of one segment it is [CLS], as in classification.
    With `own_projections` global tokens have queries of their own, and keys and values of their own to read. All three
    begin as copies of the others and are computed for all tokens. Costs count [CLS] alone for a segment. Raises
    UserError for other tokens and for attention to one side.
    """

    tokens: int | str = 1
    own_projections: bool = True
    exact_at_places: ClassVar[bool] = True

    def check(self, shape: Bert) -> None:
        super().check(shape)
        if not (self.tokens == SEGMENT or (isinstance(self.tokens, int) and self.tokens >= 1)):
            raise UserError(f"unknown global tokens={self.tokens}", f"give how many, or {SEGMENT}")
        if shape.attention != "full" or self.sides != "both":
            cause = "global tokens see all of a row, but model.attention or sides hides a side"
            raise UserError(cause, "set model.attention=full and sides=both, or choose window")
        others = {what for change in shape.changes.values() for what in change.sets & {"queries", "width of heads"}}
        if self.own_projections and others:
            cause = f"global tokens have projections of their own, but another change sets the {min(others)}"
            raise UserError(cause, "set own_projections=false")

    def alter(self, encoder: Encoder) -> None:
        if self.own_projections:
            for layer in encoder.backbone.encoder.layer:
                attention = layer.attention.self
                for name in ("query", "key", "value"):
                    local = getattr(attention, name)
                    setattr(attention, name, TwoProjections(local.in_features, local.out_features))

    def begin(self, encoder: Encoder) -> None:
        for module in encoder.modules():
            if isinstance(module, TwoProjections):
                with torch.no_grad():
                    module.of_global.weight.copy_(module.weight)
                    module.of_global.bias.copy_(module.bias)

    def attention(self, shape: Bert, layer: int) -> AttentionPart:
        return LongformerPart(self.side, self.dilation, self.tokens, self.own_projections)

    def seen(self, shape: Bert, length: float) -> float:
        tokens = 1 if isinstance(self.tokens, str) else self.tokens
        behind = (max(length - 1 - place, 0) for place in range(int(min(tokens, length))))
        more = sum(there - min(self.side, there // self.dilation) for there in behind)  # outside of the window
        return super().seen(shape, length) + 2 * more / length

    def forward_flops(self, shape: Bert, tokens: float, length: float) -> float:
        return shape.layers * 6.0 * tokens * shape.hidden**2 if self.own_projections else 0.0

    def lacks_class(self, shape: Bert) -> str | None:
        return "Longformer in transformers has no global tokens unless its caller names them"


class TwoProjections(nn.Linear):
    """A projection, and behind its features those of a second one, which serves global tokens."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.of_global = nn.Linear(inputs, outputs)

    def forward(self, state_BLD: Tensor) -> Tensor:
        return torch.cat([super().forward(state_BLD), self.of_global(state_BLD)], -1)


class LongformerPart(WindowPart):
    """`visible` is the window, `visible_in` has the global tokens too."""

    def __init__(self, width: int, dilation: int, tokens: int | str, own_projections: bool) -> None:
        super().__init__(width, "both", dilation)
        self.tokens, self.own_projections = tokens, own_projections

    def seers(self, rows: Rows) -> Tensor:
        length = rows.key.shape[2]
        if self.tokens != SEGMENT:
            return torch.arange(min(int(self.tokens), length), device=rows.key.device)[None]
        count_B1 = rows.first_B.clamp(min=1)[:, None]
        place_1G = torch.arange(int(count_B1.max()), device=rows.key.device)[None]
        return place_1G.where(place_1G < count_B1, -1)

    def visible_in(self, rows: Rows, place_Q: Tensor, place_K: Tensor) -> Tensor:
        most_B1 = self.seers(rows).max(1, keepdim=True).values
        global_Q, global_K = place_Q <= most_B1, place_K <= most_B1
        return self.visible(place_Q, place_K) | global_Q[:, None, :, None] | global_K[:, None, None, :]
