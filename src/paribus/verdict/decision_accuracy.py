"""Whether a small scale predicts a large one: how often an effect keeps its sign, and how strongly effects correlate.

The share that keeps its sign is the decision accuracy of DataDecide (Magnusson et al. 2025). Contrasts of one study
share runs, so resampling draws whole studies. With 15 studies of 4 contrasts, such a 95% interval holds the truth in
about 92% of simulated cases (`tests/verdict/test_decision_accuracy.py`).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from paribus.verdict.resampling import percentile
from paribus.verdict.statistics import LEVEL, rounded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

FEWEST = 3  # pairs with a correlation, and studies to resample
ALONE = 0.6745  # the median size of a standard normal: what the mean of one pair of runs measures without any effect


class EffectPair(NamedTuple):
    """The effect of one contrast at a small and at a large scale, in the same unit and with the same sign.

    `study`: contrasts of one study share runs.
    """

    study: str
    small: float
    large: float


@dataclass(frozen=True)
class SignShare:
    """How many of `count` effects have the same sign at both scales.

    `ties`: those that are exactly 0 at a scale, which are not counted. `ci_low`, `ci_high`: exact 95% interval (Clopper
    and Pearson 1934), as if the effects were independent. `ci_studies`: 95% interval from resampling whole studies.
    """

    same: int
    count: int
    ties: int
    share: float | None
    ci_low: float | None
    ci_high: float | None
    ci_studies: tuple[float, float] | None


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's, with the 95% interval from resampling whole studies; None if there are too few."""

    value: float | None
    ci_studies: tuple[float, float] | None


@dataclass(frozen=True)
class SignalToNoise:
    """Effects of a column at a scale, over the spread of the seeds.

    `signal`: the median size of an effect. `noise`: the median standard deviation of one pair of runs. `ratio`: signal
    over noise; `alone`: what the ratio is on average if no arm differs, since a mean over few seeds is not 0 either.
    """

    signal: float
    noise: float | None
    ratio: float | None
    alone: float | None
    count: int


def count_signs(pairs: Sequence[EffectPair]) -> SignShare:
    """The share of the effects that keep their sign."""
    from scipy.stats import binomtest

    clear = [pair for pair in pairs if pair.small and pair.large]
    kept = [(pair.small > 0.0) == (pair.large > 0.0) for pair in clear]
    ties = len(pairs) - len(clear)
    if not clear:
        return SignShare(0, 0, ties, None, None, None, None)
    exact = binomtest(sum(kept), len(kept)).proportion_ci(LEVEL, "exact")
    resampled = _resample_studies(clear, lambda drawn: float(drawn.mean()), kept)
    share, low, high = (rounded(float(value)) for value in (sum(kept) / len(kept), exact.low, exact.high))
    return SignShare(sum(kept), len(kept), ties, share, low, high, resampled)


def correlate(pairs: Sequence[EffectPair]) -> RankCorrelation:
    """Spearman's correlation of the effects at both scales."""
    import numpy as np
    from scipy.stats import rankdata

    def measure(effects_N2: Array) -> float:
        ranks_N2 = rankdata(effects_N2, axis=0)
        return float(np.corrcoef(ranks_N2.T)[0, 1]) if ranks_N2.std(axis=0).all() else 0.0

    if len(pairs) < FEWEST:
        return RankCorrelation(None, None)
    effects_N2 = np.array([[pair.small, pair.large] for pair in pairs])
    return RankCorrelation(rounded(measure(effects_N2)), _resample_studies(pairs, measure, effects_N2))


def _resample_studies(
    pairs: Sequence[EffectPair], statistic: Callable[[Array], float], values: Sequence[Any] | Array
) -> tuple[float, float] | None:
    """The percentile interval of a statistic of the values, one for each pair; None below `FEWEST` studies."""
    import numpy as np

    studies = list(dict.fromkeys(pair.study for pair in pairs))
    if len(studies) < FEWEST:
        return None
    places = [np.array([at for at, pair in enumerate(pairs) if pair.study == study]) for study in studies]
    values_N = np.asarray(values)

    def measure(drawn: Array) -> float:
        return statistic(values_N[np.concatenate([places[study] for study in drawn])])

    interval = percentile(measure, len(studies))
    assert interval is not None
    return interval.low, interval.high


def measure_signal(effects: Sequence[tuple[float, float | None, int]]) -> SignalToNoise:
    """Signal and noise of a column.

    Args:
        effects: at least one of (effect, standard deviation of one pair of runs or None, number of pairs).
    """
    signal = statistics.median(abs(effect) for effect, _, _ in effects)
    known = [(sd, n) for _, sd, n in effects if sd]
    if not known:
        return SignalToNoise(rounded(signal), None, None, None, len(effects))
    noise = statistics.median(sd for sd, _ in known)
    alone = ALONE / math.sqrt(statistics.median(n for _, n in known))
    return SignalToNoise(rounded(signal), rounded(noise), rounded(signal / noise), rounded(alone), len(effects))
