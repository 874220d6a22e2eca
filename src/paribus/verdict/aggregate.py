"""Over all tasks of a table at once: interquartile mean and probability of improvement (Agarwal et al. 2021, rliable).

Scores are `scores_NT`: seeds x tasks, or many resamples of them, `scores_RNT`; the statistics work on either.
Intervals come from a bootstrap stratified by task. Here all tasks of a seed share one pre-training, so by default the
seeds are drawn once for all tasks; drawing them for each task by itself, as rliable does for runs that share nothing,
would take one pre-training for as many as there are tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from paribus.verdict.bootstrap import Interval, generator
from paribus.verdict.statistics import ALPHA, rounded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Scores = NDArray[Any]

RESAMPLES = 1000


class Estimate(NamedTuple):
    """A number with its 95 % interval; None below two seeds."""

    value: float
    interval: Interval | None


def iqm(scores_RNT: Scores) -> Any:
    """Mean of the middle half of all scores of a resample."""
    from scipy.stats import trim_mean

    return trim_mean(scores_RNT.reshape(*scores_RNT.shape[:-2], -1), 0.25, axis=-1)


def improvement(first_RNT: Scores, second_RMT: Scores) -> Any:
    """P(a run of the first scores above one of the second) on a task, ties counting half, averaged over tasks."""
    import numpy as np
    from scipy.stats import rankdata

    n, m = first_RNT.shape[-2], second_RMT.shape[-2]
    ranks = rankdata(np.concatenate([first_RNT, second_RMT], axis=-2), axis=-2)
    wins_RT = ranks[..., :n, :].sum(-2) - n * (n + 1) / 2.0  # Mann-Whitney's U
    return (wins_RT / (n * m)).mean(-1)


def estimate(
    statistic: Callable[..., Any], *arms: Scores, paired: bool = True, joint: bool = True, resamples: int = RESAMPLES
) -> Estimate:
    """A statistic of one or more arms with its stratified bootstrap interval.

    Args:
        paired: the arms' seeds are the same and are drawn together.
        joint: the tasks of a seed stay together.
    """
    import numpy as np

    value = rounded(float(statistic(*arms)))
    if min(len(arm) for arm in arms) < 2:
        return Estimate(value, None)
    found = statistic(*_resampled(arms, paired, joint, resamples))
    low, high = np.quantile(found, [ALPHA / 2.0, 1.0 - ALPHA / 2.0])
    return Estimate(value, Interval(rounded(float(low)), rounded(float(high))))


def _resampled(arms: Sequence[Scores], paired: bool, joint: bool, resamples: int) -> list[Scores]:
    """Of each arm its resamples, `scores_RNT`."""
    import numpy as np

    random = generator()

    def rows(arm: Scores) -> Any:
        drawn = random.integers(0, len(arm), (resamples, len(arm), 1 if joint else arm.shape[1]))
        return np.broadcast_to(drawn, (resamples, *arm.shape))

    shared = rows(arms[0])
    return [np.take_along_axis(arm[None], shared if paired else rows(arm), axis=1) for arm in arms]
