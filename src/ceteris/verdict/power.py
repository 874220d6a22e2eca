"""How many seeds would settle a claim, if the difference and its spread are what they look like now."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ceteris.verdict.statistics import ALPHA, t_quantile

POWER = 0.8
MOST_SEEDS = 1000


def power(distances: Sequence[float], sd: float, n: int, alpha: float = ALPHA) -> float:
    """The chance that a two-sided 1 - alpha interval over n pairs crosses none of the boundaries at these distances.

    Noncentral t for one boundary; for two (equivalence) the Bonferroni bound of both misses, which is close where the
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
    low, high = 1, 2
    while power(distances, sd, high, alpha) < POWER:
        if high >= MOST_SEEDS:
            return None
        low, high = high, min(2 * high, MOST_SEEDS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(distances, sd, middle, alpha) >= POWER else (middle, high)
    return high
