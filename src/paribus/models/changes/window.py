"""Attention in a window around each token (Longformer, arXiv 2004.05150, section 3.1, without global tokens)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar, Final

import torch
from torch import Tensor

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.models.attention_part import AttentionPart, KeyBlocks
from paribus.models.change import Change

if TYPE_CHECKING:
    from paribus.models.bert import Bert

SIDES = ("both", "left", "right")
COUNTED = ("side", "total")
SMALLEST: Final = 32  # tokens of a block: smaller matrix products are slow


@dataclass(frozen=True)
class Window(Change):
    """A token sees `width` tokens on each of `sides`, and itself, as in Longformer's repository.

    With `counted="total"` the width is that of both sides together, as `attention_window` of `transformers`. A window
    with gaps sees every `dilation`-th token, and reaches that much farther. Long rows are computed in blocks if the
    window has no gaps; the costs are always those of the keys that are seen. Raises UserError for a width below 1 and
    sides that the model hides.
    """

    width: int = field(default=64, metadata=within(1, 10**6))
    sides: str = "both"
    dilation: int = field(default=1, metadata=within(1, 10**6))
    counted: str = "side"
    sets: ClassVar[frozenset[str]] = frozenset({"visibility"})
    exact_at_places: ClassVar[bool] = True
    unset_values: ClassVar[Mapping[str, Any]] = {"dilation": 1, "counted": "side"}

    def check(self, shape: Bert) -> None:
        if self.width < 1:
            raise UserError(f"a window has width={self.width}, below 1", "give the number of tokens on each side")
        if self.dilation < 1:
            raise UserError(f"a window has dilation={self.dilation}, below 1", "set dilation=1 for one without gaps")
        for name, value, known in (("sides", self.sides, SIDES), ("counted", self.counted, COUNTED)):
            if value not in known:
                raise UserError(f"a window has unknown {name}={value}", f"use {', '.join(known)}")
        if self.counted == "total" and (self.width % 2 or self.sides != "both"):
            cause = f"counted=total halves the width among both sides, but width={self.width} and sides={self.sides}"
            raise UserError(cause, "give an even width and sides=both, or set counted=side")
        if {self.sides, shape.attention} == {"left", "right"}:
            cause = f"with model.attention={shape.attention}, a window to the {self.sides} leaves a token only itself"
            raise UserError(cause, "set sides=both")

    @property
    def side(self) -> int:
        """Tokens that are seen on a side."""
        return self.width if self.counted == "side" else self.width // 2

    @property
    def reads_both_sides(self) -> bool:
        return self.sides == "both"

    def attention(self, shape: Bert, layer: int) -> AttentionPart | None:
        return WindowPart(self.side, self.sides, self.dilation)

    def seen(self, shape: Bert, length: float) -> float:
        width = min(self.side, (length - 1) // self.dilation)
        beside = width - self.dilation * width * (width + 1) / (2 * length)  # on one side; rows end
        return 1 + beside * (2 if self.sides == "both" and shape.attention == "full" else 1)

    def lacks_class(self, shape: Bert) -> str | None:
        return "Longformer in transformers has projections for global tokens, which an encoder with windows lacks"


class WindowPart(AttentionPart):
    """Hides what is outside of the window."""

    any_places = True

    def __init__(self, width: int, sides: str, dilation: int = 1) -> None:
        super().__init__()
        self.left, self.right = (width if sides in ("both", side) else 0 for side in ("left", "right"))
        self.dilation = dilation

    def visible(self, place_Q: Tensor, place_K: Tensor) -> Tensor:
        ahead_B1QK = place_K[:, None, None, :] - place_Q[:, None, :, None]
        reach = self.dilation
        near_B1QK = (ahead_B1QK >= -self.left * reach) & (ahead_B1QK <= self.right * reach)
        return near_B1QK if reach == 1 else near_B1QK & (ahead_B1QK % reach == 0)

    def blocks(self, length: int, device: torch.device) -> KeyBlocks | None:
        """KeyBlocks of half a window: smaller ones hold less that is not seen."""
        if self.dilation > 1:
            return None
        size = max(SMALLEST, max(self.left, self.right) // 2)
        count, first, last = ceil(length / size), -ceil(self.left / size), ceil(self.right / size)
        table_NC = torch.arange(count, device=device)[:, None] + torch.arange(first, last + 1, device=device)
        return KeyBlocks(size, table_NC.masked_fill(table_NC >= count, -1).clamp(min=-1)[None])
