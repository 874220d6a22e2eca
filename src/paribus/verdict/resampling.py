"""Intervals by resampling seeds: bias-corrected and accelerated for a mean, of percentiles for what has no formula.

With few seeds these are too narrow (at n = 5 the 95% interval of a mean covers about 85%, measured in
analysis/results/calibration.json), so no verdict rests on them. Of percentiles are those of Kendall's tau, which
compares the order of a table's arms with the paper's, and of the multibootstrap, which resamples seeds and examples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from paribus.verdict.statistics import ALPHA, mean_sd, rounded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

ENOUGH = 20  # seeds from which a bootstrap interval is worth printing beside Student's
RESAMPLES = 5000
_SEED = 20190726  # of the resampling: the same records give the same bytes


class BootstrapInterval(NamedTuple):
    """A two-sided interval."""

    low: float
    high: float


def draws(n: int, resamples: int = RESAMPLES) -> Array:
    """Which of n seeds each resample is made of: indices, one row per resample."""
    import numpy as np

    drawn_RN: Array = np.random.Generator(np.random.Philox(_SEED)).integers(0, n, (resamples, n))
    return drawn_RN


def bca(values: Sequence[float], resamples: int = RESAMPLES) -> BootstrapInterval | None:
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
    off = sample.mean() - sample  # leaving one out moves the mean by this, over n - 1
    # the acceleration of the mean, by the jackknife: a sixth of the skewness over the root of n
    bias, pull = float(ndtri(below)), float((-(off**3)).sum() / (6.0 * math.pow((off**2).sum(), 1.5)))
    ends = bias + np.array([ndtri(ALPHA / 2.0), -ndtri(ALPHA / 2.0)])
    low, high = np.quantile(means, ndtr(bias + ends / (1.0 - pull * ends)))
    return BootstrapInterval(rounded(float(low)), rounded(float(high)))


def percentile(statistic: Callable[[Array], float], n: int) -> BootstrapInterval | None:
    """The percentile interval of a statistic of which seeds (indices) are in the sample; None below two seeds."""
    import numpy as np

    if n < 2:
        return None
    values = [statistic(drawn) for drawn in draws(n)]
    low, high = np.quantile(values, [ALPHA / 2.0, 1.0 - ALPHA / 2.0])
    return BootstrapInterval(rounded(float(low)), rounded(float(high)))


FEWEST = 3  # arms with an order: two have none to speak of


class Agreement(NamedTuple):
    """tau from -1 (reversed) to 1 (the same order); `n` seeds that all arms share; its 95% percentile interval."""

    tau: float
    interval: BootstrapInterval | None
    n: int
    arms: tuple[str, ...]


def compare_order(ours: Mapping[str, Mapping[int, float]], papers: Mapping[str, float]) -> Agreement | None:
    """Compare the order of the arms' means ({arm: {seed: value}}) with the paper's numbers, both up is better or down.

    Only arms that both have, over the seeds that all of these share. None below three arms, without a shared seed, or
    if either side is all ties.
    """
    import numpy as np

    arms = tuple(arm for arm in ours if arm in papers and ours[arm])
    seeds = sorted(set.intersection(*(set(ours[arm]) for arm in arms))) if arms else []
    if len(arms) < FEWEST or not seeds:
        return None
    values_AN = np.array([[ours[arm][seed] for seed in seeds] for arm in arms])
    theirs = [papers[arm] for arm in arms]
    tau = kendall(values_AN.mean(1).tolist(), theirs)
    if tau is None:
        return None
    interval = percentile(lambda drawn: kendall(values_AN[:, drawn].mean(1).tolist(), theirs) or 0.0, len(seeds))
    return Agreement(tau, interval, len(seeds), arms)


def kendall(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Tau-b (Kendall 1945); None if one side is all ties."""
    import numpy as np

    upper = np.triu_indices(len(first), 1)
    one, other = (np.sign(np.subtract.outer(side, side))[upper] for side in (first, second))
    scale = float(np.sqrt((one**2).sum() * (other**2).sum()))
    return round(float((one * other).sum()) / scale, 10) if scale else None


class Resampled(NamedTuple):
    """The difference of two means over seeds and examples, its 95% percentile interval, and the two-sided p of zero."""

    difference: float
    low: float
    high: float
    p: float


def multibootstrap(first_SN: Array, second_SN: Array, shared: bool, resamples: int = 2000) -> Resampled | None:
    """Resample seeds and examples together (Sellam and others 2022, MultiBERTs, section 3); None below two seeds.

    Args:
        first_SN, second_SN: the score of each seed on each example.
        shared: whether row s of both has one seed; otherwise the seeds of each are drawn apart.
    """
    import numpy as np

    n = first_SN.shape[1]
    if min(len(first_SN), len(second_SN)) < 2 or not n:
        return None
    random = np.random.Generator(np.random.Philox(_SEED))
    differences = np.empty(resamples)
    for at in range(resamples):
        seeds = random.integers(0, len(first_SN), len(first_SN))
        others = seeds if shared else random.integers(0, len(second_SN), len(second_SN))
        examples = random.integers(0, n, n)
        differences[at] = (first_SN[seeds].mean(0) - second_SN[others].mean(0))[examples].mean()
    low, high = np.quantile(differences, [ALPHA / 2.0, 1.0 - ALPHA / 2.0])
    ties = np.count_nonzero(differences == 0.0) / 2.0
    below = (np.count_nonzero(differences < 0.0) + ties) / resamples
    p = min(1.0, 2.0 * max(1.0 / resamples, min(below, 1.0 - below)))
    mean = float(first_SN.mean() - second_SN.mean())
    return Resampled(rounded(mean), rounded(float(low)), rounded(float(high)), rounded(p))


def superiority(first: Sequence[float], second: Sequence[float]) -> float | None:
    """The chance that a run of the first arm has a larger number than one of the second; ties count half.

    Mann and Whitney's U (1947), over the number of pairs. None if an arm has no run.
    """
    import numpy as np

    if not len(first) or not len(second):
        return None
    signs = np.sign(np.subtract.outer(np.asarray(first, dtype=float), np.asarray(second, dtype=float)))
    return rounded(float((signs.mean() + 1.0) / 2.0))


def stochastic_order(first: Sequence[float], second: Sequence[float], resamples: int = 1000) -> float | None:
    """By how much the first arm may violate being stochastically larger, from 0 (never smaller) to 1.

    The upper 95% bound of the violation ratio of almost stochastic order (del Barrio and others 2018; Dror, Shlomov and
    Reichart 2019, section 4); below 0.5 the first arm is called better. None without spread.
    """
    import numpy as np
    from scipy.special import ndtri

    one, other = (np.asarray(side, dtype=float) for side in (first, second))
    if min(len(one), len(other)) < 2:
        return None
    (ratio,) = _violations(one[None], other[None])
    if math.isnan(ratio):
        return None
    random = np.random.Generator(np.random.Philox(_SEED))
    drawn = (side[random.integers(0, len(side), (resamples, len(side)))] for side in (one, other))
    scale = math.sqrt(len(one) * len(other) / (len(one) + len(other)))
    spread = float(np.nanstd(scale * (_violations(*drawn) - ratio), ddof=1))
    return rounded(min(1.0, max(0.0, float(ratio) - float(ndtri(ALPHA)) * spread / scale)))


def _violations(one_RN: Array, other_RM: Array) -> Array:
    """[R]: the share of the squared distance between both quantile functions where that of `one` is below.

    NaN for equal samples.
    """
    import numpy as np

    n, m = one_RN.shape[1], other_RM.shape[1]
    ends = np.union1d(np.arange(n + 1) / n, np.arange(m + 1) / m)
    middles, widths = (ends[1:] + ends[:-1]) / 2.0, np.diff(ends)
    gaps = np.sort(one_RN)[:, (middles * n).astype(int)] - np.sort(other_RM)[:, (middles * m).astype(int)]
    below, total = (np.minimum(gaps, 0.0) ** 2) @ widths, gaps**2 @ widths
    share: Array = np.divide(below, total, out=np.full(len(total), np.nan), where=total > 0.0)
    return share
