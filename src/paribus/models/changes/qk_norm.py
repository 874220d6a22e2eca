"""Queries and keys are normalized, head by head (Henry et al., arXiv 2010.04245; Dehghani et al., arXiv 2302.05442)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from torch import Tensor, nn

from paribus.core.errors import UserError
from paribus.models.attention_part import AttentionPart
from paribus.models.change import Change

if TYPE_CHECKING:
    from paribus.models.bert import Bert

EPS: Final = 1e-6  # of Qwen3 and OLMo 2 in `transformers`
KINDS: Final = ("rms", "layer")


@dataclass(frozen=True)
class QKNorm(Change):
    """An RMSNorm, or a LayerNorm without bias, of the queries and of the keys of each head, with scales that all heads
    of a layer share.

    Raises UserError for an unknown kind.

    Attributes:
        kind: "rms" or "layer".
        gain: whether the scales are learned; without it they are 1.
        before_positions: whether a change that turns queries and keys by their positions comes after it.
    """

    kind: str = "rms"
    gain: bool = True
    before_positions: bool = True
    exact_at_places: ClassVar[bool] = True

    def check(self, shape: Bert) -> None:
        if self.kind not in KINDS:
            raise UserError(f"a norm of queries and keys has kind={self.kind}", f"use {' or '.join(KINDS)}")

    def attention(self, shape: Bert, layer: int) -> AttentionPart:
        return QKNormPart(shape.key_size, self)

    def forward_flops(self, shape: Bert, tokens: float, length: float) -> float:
        """A square, a sum and a product for each feature, one more for the scale, two for the mean."""
        each = 3.0 + self.gain + 2 * (self.kind == "layer")
        return tokens * shape.layers * 2 * shape.heads * shape.key_size * each


class QKNormPart(AttentionPart):
    """Normalizes the features of a head."""

    def __init__(self, width: int, settings: QKNorm) -> None:
        super().__init__()
        self.turn_order = 1 if settings.before_positions else 3  # type: ignore[misc]
        self.query_norm, self.key_norm = (
            nn.RMSNorm(width, eps=EPS, elementwise_affine=settings.gain)
            if settings.kind == "rms"
            else nn.LayerNorm(width, eps=EPS, elementwise_affine=settings.gain, bias=False)
            for _ in range(2)
        )

    def turn(self, query: Tensor, key: Tensor, place_Q: Tensor, place_K: Tensor) -> tuple[Tensor, Tensor]:
        return self.query_norm(query), self.key_norm(key)
