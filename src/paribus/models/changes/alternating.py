"""Windows in most layers, all tokens in every third (ModernBERT, arXiv 2412.13663, section 2.1.2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.models.changes.window import Window

if TYPE_CHECKING:
    from paribus.models.attention_part import AttentionPart
    from paribus.models.bert import Bert


@dataclass(frozen=True)
class Alternating(Window):
    """The first layer and every `every`-th after it see all tokens, the others a window, as in `Window`.

    Raises UserError if `every` is below 2.
    """

    every: int = field(default=3, metadata=within(2, 1000))

    def check(self, shape: Bert) -> None:
        super().check(shape)
        if self.every < 2:
            raise UserError(f"every={self.every} leaves no layer a window", "set every=3, or leave the change out")

    def attention(self, shape: Bert, layer: int) -> AttentionPart | None:
        return super().attention(shape, layer) if layer % self.every else None

    def lacks_class(self, shape: Bert) -> str | None:
        return "transformers has no class for BERT's layers with windows in some of them"

    def seen(self, shape: Bert, length: float) -> float:
        whole = -(-shape.layers // self.every)
        every = length if shape.attention == "full" else (length + 1) / 2
        return (whole * every + (shape.layers - whole) * super().seen(shape, length)) / shape.layers
