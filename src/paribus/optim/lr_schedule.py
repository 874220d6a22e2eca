"""The learning rate over a run: position x curve, after a warm-up."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from paribus.core.errors import UserError
from paribus.core.settings import within

# share of the run after the warm-up (0..1), share that was warm-up, final share of the peak -> share of the peak
CURVES: dict[str, Callable[[float, float, float], float]] = {
    "constant": lambda progress, warmup, final: 1.0,
    "linear": lambda progress, warmup, final: 1.0 - (1.0 - final) * progress,
    "cosine": lambda progress, warmup, final: final + (1.0 - final) * 0.5 * (1.0 + math.cos(math.pi * progress)),
    "inverse_sqrt": lambda progress, warmup, final: math.sqrt(warmup / (warmup + (1.0 - warmup) * progress)),
}
FALLING = ("linear", "cosine")
RISES = ("linear", "none", "product")


@dataclass(frozen=True)
class Schedule:
    """`curve` over the share of `position` (steps or tokens) that is done. In the warm-up the rate rises linearly, or
    (`rise="none"`) stays at the peak, as T5's; the curve begins after it. With `rise="product"` the curve
    covers the whole run and the rise is a factor of it, as in ELECTRA's `optimization.py` and GPT-1's `opt.py`, so that
    the peak is never reached. With `decay`, a share of the run, the rate stays at the peak and the curve covers only
    the end of the run: warm-up, stable, decay (MiniCPM, arXiv 2404.06395, section 4; linear: Hägele et al., arXiv
    2405.18392, section 3). Raises UserError for unknown names and shares that do not fit.
    """

    curve: str
    position: str = "steps"
    warmup: float = 0.06
    final: float = field(default=0.0, metadata=within(0, 1))
    rise: str = "linear"
    decay: float | None = None
    semantics: ClassVar[int] = 1
    unset_values: ClassVar[Mapping[str, Any]] = {"rise": "linear", "decay": None}

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

        if self.decay is not None:
            if self.curve not in FALLING:
                cause = f"lr_schedule.decay={self.decay} needs a curve that falls to lr_schedule.final"
                raise UserError(cause, f"use {' or '.join(FALLING)}")
            if not 0 < self.decay <= 1 - self.warmup:
                cause = f"lr_schedule.decay={self.decay} does not fit lr_schedule.warmup={self.warmup}"
                raise UserError(cause, "give a share of the run such as 0.2")

    def factor(self, done: float) -> float:
        """Share of the peak rate when the share `done` (0..1] of the run is reached with the coming step."""
        if self.rise == "product":
            return (min(1.0, done / self.warmup) if self.warmup else 1.0) * self._fall(done, 0.0)
        if done < self.warmup:
            return done / self.warmup if self.rise == "linear" else 1.0
        return self._fall(done, self.warmup)

    def _fall(self, done: float, first: float) -> float:
        """The curve, which begins at the share `first` of the run, or `decay` before its end."""
        begin = first if self.decay is None else 1.0 - self.decay
        progress = min(1.0, max(0.0, (done - begin) / (1.0 - begin)))
        return CURVES[self.curve](progress, self.warmup, self.final)
