"""The learning rate over a run: position x curve, after a warm-up."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from paribus.core.errors import UserError

# share of the run after the warm-up (0..1), share that was warm-up, final share of the peak -> share of the peak
CURVES: dict[str, Callable[[float, float, float], float]] = {
    "constant": lambda progress, warmup, final: 1.0,
    "linear": lambda progress, warmup, final: 1.0 - (1.0 - final) * progress,
    "cosine": lambda progress, warmup, final: final + (1.0 - final) * 0.5 * (1.0 + math.cos(math.pi * progress)),
    "inverse_sqrt": lambda progress, warmup, final: math.sqrt(warmup / (warmup + (1.0 - warmup) * progress)),
}
RISES = ("linear", "none", "product")


@dataclass(frozen=True)
class Schedule:
    """`curve` over the share of `position` (steps or tokens) that is done. In the warm-up the rate rises linearly, or
    (`rise="none"`) stays at the peak, as T5's; the curve begins after it. With `rise="product"` the curve
    covers the whole run and the rise is a factor of it, as in ELECTRA's `optimization.py` and GPT-1's `opt.py`, so that
    the peak is never reached. Raises UserError for unknown names.
    """

    curve: str
    position: str = "steps"
    warmup: float = 0.06
    final: float = 0.0
    rise: str = "linear"
    semantics: ClassVar[int] = 1
    unset_values: ClassVar[Mapping[str, Any]] = {"rise": "linear"}

    def __post_init__(self) -> None:
        if self.curve not in CURVES:
            raise UserError(f"lr_schedule.curve={self.curve} is unknown", f"use {', '.join(CURVES)}")
        if self.position not in ("steps", "tokens"):
            raise UserError(f"lr_schedule.position={self.position} is unknown", "use steps or tokens")
        if self.rise not in RISES:
            raise UserError(f"lr_schedule.rise={self.rise} is unknown", f"use {', '.join(RISES)}")
        if self.rise == "product" and self.curve == "inverse_sqrt":
            raise UserError("lr_schedule.rise=product has no curve that begins at the peak", "set lr_schedule=linear")
        if not 0 <= self.warmup < 1 or (self.curve == "inverse_sqrt" and self.warmup == 0):
            raise UserError(
                f"lr_schedule.warmup={self.warmup} does not fit {self.curve}", "give a share of the run such as 0.06"
            )

    def factor(self, done: float) -> float:
        """Share of the peak rate when the share `done` (0..1] of the run is reached with the coming step."""
        if self.rise == "product":
            return (min(1.0, done / self.warmup) if self.warmup else 1.0) * CURVES[self.curve](done, 1.0, self.final)
        if done < self.warmup:
            return done / self.warmup if self.rise == "linear" else 1.0
        progress = min(1.0, (done - self.warmup) / (1.0 - self.warmup))
        return CURVES[self.curve](progress, self.warmup, self.final)
