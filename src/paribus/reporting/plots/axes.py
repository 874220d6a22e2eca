"""Scales with readable ticks, and the frame of a panel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from paribus.reporting.plots.scene import Item, Label, Line

_ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)
_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


ROUNDING, OPENED = 1e-9, 0.01  # values nearer to zero than the first count as zero; what an axis shows around them


@dataclass(frozen=True)
class Scale:
    """Values low..high on pixels start..end; `log`: by orders of magnitude. low < high."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        low, high, value = (math.log(x) if self.log else x for x in (self.low, self.high, value))
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def ticks(self, most: int = 5) -> list[float]:
        """Round values inside, about `most` at most."""
        return _decades(self.low, self.high) if self.log else _steps(self.low, self.high, most)


def spread(values: Sequence[float], start: float, end: float, log: bool = False, room: float = 0.08) -> Scale:
    """A scale with room around the values; of equal values it is opened a little."""
    low, high = min(values), max(values)
    if log:
        factor = max((high / low) ** room, 1.3)
        return Scale(low / factor, high * factor, start, end, True)
    pad = max(room * (high - low), 0.002 * max(abs(low), abs(high)))
    pad = pad if pad > ROUNDING else OPENED
    return Scale(low - pad, high + pad, start, end)


def _steps(low: float, high: float, most: int) -> list[float]:
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in _ROUND if power * factor >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def _decades(low: float, high: float) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    few = len(powers) <= 3
    found = [10.0**power * factor for power in powers for factor in ((1, 2, 5) if few else (1,))]
    return [value for value in found if low <= value <= high]


def short(value: float, digits: int = 3) -> str:
    """A number as a tick shows it: 2.5M, 0.02, 18T."""
    for size, letter in _PREFIXES:
        if abs(value) >= size:
            return f"{value / size:.{digits}g}{letter}"
    return f"{value:.4g}" if abs(value) > 1e-12 else "0"


def plain(ticks: Sequence[float]) -> list[str]:
    """Ticks with the same number of decimals, as few as distinguish them."""
    if len(ticks) < 2:
        return [f"{value:.4g}" for value in ticks]
    if max(map(abs, ticks)) >= 10_000:
        found = ([short(value, digits) for value in ticks] for digits in range(3, 8))
        return next((texts for texts in found if len(set(texts)) == len(ticks)), [short(value, 8) for value in ticks])
    step = ticks[1] - ticks[0]
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) + (0 if _is_round(step) else 1)
    return [f"{value if abs(value) > step / 1e6 else 0.0:.{decimals}f}" for value in ticks]


def _is_round(step: float) -> bool:
    head = step / 10.0 ** math.floor(math.log10(step) + 1e-9)
    return abs(head - round(head)) < 1e-6


def across(scale: Scale, top: float, bottom: float, most: int = 5) -> list[Item]:
    """The horizontal axis below a panel: grid lines and ticks."""
    ticks = scale.ticks(most)
    texts = [short(value) for value in ticks] if scale.log else plain(ticks)
    items: list[Item] = [Line(((scale(value), top), (scale(value), bottom)), "grid", 1) for value in ticks]
    items.append(Line(((scale.start, bottom), (scale.end, bottom)), "soft", 1))
    named = zip(ticks, texts, strict=True)
    return [*items, *(Label(scale(value), bottom + 14, text, 10, "middle", "soft") for value, text in named)]


def up(scale: Scale, left: float, right: float, most: int = 5) -> list[Item]:
    """The vertical axis left of a panel: grid lines and ticks."""
    ticks = scale.ticks(most)
    items: list[Item] = [Line(((left, scale(value)), (right, scale(value))), "grid", 1) for value in ticks]
    named = zip(ticks, plain(ticks), strict=True)
    return [*items, *(Label(left - 5, scale(value) + 3.5, text, 10, "end", "soft") for value, text in named)]
