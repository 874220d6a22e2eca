"""Sinusoids as positions (Vaswani et al., arXiv 1706.03762, section 3.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from paribus.core.errors import UserError
from paribus.models.change import Positions
from paribus.models.positions import make_sinusoids

if TYPE_CHECKING:
    from paribus.models.bert import Bert
    from paribus.models.encoder import Encoder

VARIANTS = ("paper", "tensor2tensor")
PLACES = ("input", "layers")


@dataclass(frozen=True)
class Sinusoidal(Positions):
    """Fixed sinusoids of the position, which are added to the embeddings, or to what every layer reads.

    `variant` says in which order and at which frequencies, see `make_sinusoids`. `place="layers"` is the Universal
    Transformer's (arXiv 1807.03819, section 2.1), without its sinusoids of the layer. Sinusoids are multiplied by
    `scale`. Without one they are as large beside the initial word embeddings as in the paper, which multiplies words of
    deviation width^-0.5 by width^0.5: `model.initializer_range` at the input, 1 at the layers. Raises UserError for an
    odd width and unknown settings.
    """

    variant: str = "paper"
    place: str = "input"
    scale: float | None = None

    def __post_init__(self) -> None:
        for key, value, known in (("variant", self.variant, VARIANTS), ("place", self.place, PLACES)):
            if value not in known:
                raise UserError(f"model.changes.position.{key}={value} is unknown", f"use {' or '.join(known)}")
        if self.scale is not None and not self.scale > 0:
            cause = f"model.changes.position.scale={self.scale} is not above 0"
            raise UserError(cause, "give 1 for plain sinusoids, or null")

    def check(self, shape: Bert) -> None:
        key, width = ("embedding", shape.table_width) if self.place == "input" else ("hidden", shape.hidden)
        if width % 2:
            raise UserError(f"sinusoids come in pairs, but the width is {width}", f"give an even model.{key}")

    @property
    def at_layers(self) -> bool:
        return self.place == "layers"

    def alter(self, encoder: Encoder) -> None:
        super().alter(encoder)
        embeddings, shape = encoder.backbone.embeddings, encoder.spec
        if self.place == "input":
            scale = shape.initializer_range if self.scale is None else self.scale
            embeddings.position_embeddings = Sinusoids(shape.table_width, self.variant, scale, encoder.first_position)
            return
        for layer in encoder.backbone.encoder.layer:
            layer.sinusoids = Sinusoids(shape.hidden, self.variant, 1.0 if self.scale is None else self.scale)
            layer.register_forward_pre_hook(_add_sinusoids)


class Sinusoids(nn.Module):
    """The sinusoids of positions that are counted from `first`."""

    def __init__(self, width: int, variant: str, scale: float, first: int = 0) -> None:
        super().__init__()
        self.width, self.variant, self.scale, self.first = width, variant, scale, first

    def forward(self, position: Tensor) -> Tensor:
        return make_sinusoids(position - self.first, self.width, self.variant) * self.scale


def _add_sinusoids(layer: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
    state_BLD, *rest = given
    place_L = torch.arange(state_BLD.shape[1], device=state_BLD.device)
    return (state_BLD + layer.sinusoids(place_L).to(state_BLD.dtype), *rest)
