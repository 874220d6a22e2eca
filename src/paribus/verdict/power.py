"""How many seeds would settle a claim, and what a number of seeds can see, if the spread is what it looks like now."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from paribus.verdict.statistics import ALPHA, t_quantile

POWER = 0.8
MOST_SEEDS = 1000
LIKELY = 0.8  # of a range of seeds


class Range(NamedTuple):
    """Between how many seeds would decide; `most` None: no end in sight."""

    least: int
    most: int | None

    def __str__(self) -> str:
        if self.most is None:
            return f"needs {self.least} seeds or more"
        return (
            f"needs about {self.least} seeds" if self.least == self.most else f"needs {self.least} to {self.most} seeds"
        )


def join_ranges(ranges: Sequence[Range]) -> Range:
    """What decides all of several contrasts."""
    ends = [one.most for one in ranges]
    most = None if None in ends else max(end for end in ends if end is not None)
    return Range(max(one.least for one in ranges), most)


def power(distances: Sequence[float], sd: float, n: int, alpha: float = ALPHA) -> float:
    """The chance that a two-sided 1 - alpha interval over n pairs crosses none of the boundaries at these distances.

    Noncentral t for one boundary; for two (equivalence) the Bonferroni bound of both misses, which is close if the
    chance is high.
    """
    from scipy.special import nctdtr

    critical = t_quantile(n, alpha)
    misses = sum(float(nctdtr(n - 1, distance * math.sqrt(n) / sd, critical)) for distance in distances)
    return max(0.0, 1.0 - misses)


def seeds_needed(distances: Sequence[float], sd: float, alpha: float = ALPHA) -> int | None:
    """The smallest number of seeds with a chance of `POWER` for a decision; None above `MOST_SEEDS`."""
    if sd == 0.0 or not distances or distances[0] <= 0.0:
        return None

    def enough(n: int) -> bool:
        if len(distances) == 1:
            return distances[0] / sd >= _least(n, alpha)
        return power(distances, sd, n, alpha) >= POWER

    low, high = 1, 2
    while not enough(high):
        if high >= MOST_SEEDS:
            return None
        low, high = high, min(2 * high, MOST_SEEDS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def find_range(distances: Sequence[float], sd: float, n: int, alpha: float = ALPHA) -> Range | None:
    """`seeds_needed` at both ends of the 80% interval of the true distance over the true spread.

    Of the nearest boundary, by the noncentral t of n pairs: both are as uncertain as n pairs leave them. None if even
    the larger end needs more than `MOST_SEEDS`.
    """
    from scipy.special import nctdtrinc

    if sd == 0.0 or not distances or distances[0] <= 0.0:
        return None
    root, beyond = math.sqrt(n), [(distance - distances[0]) / sd for distance in distances]
    tails = ((1.0 - LIKELY) / 2.0, (1.0 + LIKELY) / 2.0)
    far, near = (float(nctdtrinc(n - 1, tail, distances[0] / sd * root)) / root for tail in tails)
    least, most = (seeds_needed([size + more for more in beyond], 1.0, alpha) for size in (far, near))
    if least is None:
        return None
    least = max(least, n + 1)
    return Range(least, None if most is None else max(most, least))


def detectable(sd: float, n: int, alpha: float = ALPHA) -> float | None:
    """The smallest difference that n pairs distinguish from zero with probability `POWER`; None without spread.

    A difference smaller than this that n seeds did not find is not evidence against it: "n = 5 could have seen 1.1
    points".
    """
    return float(f"{sd * _least(n, alpha):.3g}") if sd > 0.0 and n > 1 and alpha > 0.0 else None


@cache
def _least(n: int, alpha: float) -> float:
    """`detectable` in standard deviations."""
    from scipy.optimize import brentq

    def excess(distance: float) -> float:
        return power([distance], 1.0, n, alpha) - POWER

    high = 1.0
    while excess(high) < 0.0:
        high *= 2.0
    return float(brentq(excess, 0.0, high, rtol=1e-9))
