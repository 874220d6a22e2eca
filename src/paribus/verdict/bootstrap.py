"""Intervals by resampling seeds: bias-corrected and accelerated for a mean, of percentiles for what has no formula.

With few seeds these are too narrow (at n = 5 the 95% interval of a mean covers about 85%, measured in
analysis/results/calibration.json), so no verdict rests on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from paribus.verdict.statistics import ALPHA, mean_sd, rounded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

ENOUGH = 20  # seeds from which a bootstrap interval is worth printing beside Student's
RESAMPLES = 5000
_SEED = 20190726  # of the resampling: the same records give the same bytes


class Interval(NamedTuple):
    """A two-sided interval."""

    low: float
    high: float


def draws(n: int, resamples: int = RESAMPLES) -> Array:
    """Which of n seeds each resample is made of: indices, one row per resample."""
    import numpy as np

    found: Array = np.random.Generator(np.random.Philox(_SEED)).integers(0, n, (resamples, n))
    return found


def bca(values: Sequence[float], resamples: int = RESAMPLES) -> Interval | None:
    """The bias-corrected and accelerated interval of the mean (Efron 1987); None without spread."""
    import numpy as np
    from scipy.special import ndtr, ndtri

    mean, sd = mean_sd(values) if values else (0.0, None)
    if not sd:
        return None
    sample = np.asarray(values, dtype=float)
    means = sample[draws(len(values), resamples)].mean(1)
    below = (np.count_nonzero(means < mean) + np.count_nonzero(means == mean) / 2.0) / resamples
    if not 0.0 < below < 1.0:
        return None
    bias, pull = float(ndtri(below)), _acceleration(sample)
    ends = bias + np.array([ndtri(ALPHA / 2.0), -ndtri(ALPHA / 2.0)])
    low, high = np.quantile(means, ndtr(bias + ends / (1.0 - pull * ends)))
    return Interval(rounded(float(low)), rounded(float(high)))


def _acceleration(sample: Array) -> float:
    """Of the mean, by the jackknife: a sixth of the skewness over the root of n."""
    off = sample.mean() - sample  # leaving one out moves the mean by this, over n - 1
    return float((-(off**3)).sum() / (6.0 * math.pow((off**2).sum(), 1.5)))


def percentile(statistic: Callable[[Array], float], n: int) -> Interval | None:
    """The percentile interval of a statistic of which seeds (indices) are in the sample; None below two seeds."""
    import numpy as np

    if n < 2:
        return None
    found = [statistic(drawn) for drawn in draws(n)]
    low, high = np.quantile(found, [ALPHA / 2.0, 1.0 - ALPHA / 2.0])
    return Interval(rounded(float(low)), rounded(float(high)))
