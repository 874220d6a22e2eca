"""How many seeds would settle a claim, and what a number of seeds can see, if the spread is what it looks like now."""

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


def detectable(sd: float, n: int, alpha: float = ALPHA) -> float | None:
    """The smallest difference that n pairs tell from zero with a chance of `POWER`; None without spread.

    A difference smaller than this that n seeds did not find is no evidence against it: "n = 5 could have seen 1.1
    points".
    """
    if sd == 0.0 or n < 2 or alpha <= 0.0:
        return None
    low, high = 0.0, sd
    while power([high], sd, n, alpha) < POWER:
        low, high = high, 2.0 * high
    while high - low > 1e-4 * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if power([middle], sd, n, alpha) >= POWER else (middle, high)
    return float(f"{high:.3g}")
