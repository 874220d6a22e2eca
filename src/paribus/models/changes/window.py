"""Attention in a window around each token (Longformer, arXiv 2004.05150, section 3.1, without global tokens)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.models.attention_part import AttentionPart
from paribus.models.change import Change

if TYPE_CHECKING:
    from paribus.models.bert import Bert

SIDES = ("both", "left", "right")


@dataclass(frozen=True)
class Window(Change):
    """A token sees `width` tokens on each of `sides`, and itself, as in Longformer's repository.

    `attention_window` of `transformers` counts both sides. Scores are computed for all pairs: the costs are those of a
    kernel that leaves out what is hidden. Raises UserError for a width below 1 and sides that the model hides.
    """

    width: int = field(default=64, metadata=within(1, 10**6))
    sides: str = "both"
    exact_at_places: ClassVar[bool] = True

    def check(self, shape: Bert) -> None:
        if self.width < 1:
            raise UserError(f"a window has width={self.width}, below 1", "give the number of tokens on each side")
        if self.sides not in SIDES:
            raise UserError(f"a window has unknown sides={self.sides}", f"use {', '.join(SIDES)}")
        if {self.sides, shape.attention} == {"left", "right"}:
            cause = f"with model.attention={shape.attention}, a window to the {self.sides} leaves a token only itself"
            raise UserError(cause, "set sides=both")

    def attention(self, shape: Bert, layer: int) -> AttentionPart:
        return WindowPart(self.width, self.sides)

    def seen(self, shape: Bert, length: float) -> float:
        width = min(self.width, length - 1)
        beside = width - width * (width + 1) / (2 * length)  # on one side; rows end
        return 1 + beside * (2 if self.sides == "both" and shape.attention == "full" else 1)


class WindowPart(AttentionPart):
    """Hides what is outside of the window."""

    def __init__(self, width: int, sides: str) -> None:
        super().__init__()
        self.left, self.right = (width if sides in ("both", side) else 0 for side in ("left", "right"))

    def visible(self, place_Q: Tensor, place_K: Tensor) -> Tensor:
        ahead_B1QK = place_K[:, None, None, :] - place_Q[:, None, :, None]
        return (ahead_B1QK >= -self.left) & (ahead_B1QK <= self.right)
