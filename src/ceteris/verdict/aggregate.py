"""Over all tasks of a table at once: interquartile mean and probability of improvement (Agarwal et al. 2021, rliable).

Scores are `scores_NT`: seeds x tasks. Intervals come from a bootstrap stratified by task. Here all tasks of a seed
share one pre-training, so by default the seeds are drawn once for all tasks; drawing them for each task by itself, as
rliable does for runs that share nothing, would take one pre-training for as many as there are tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ceteris.verdict.bootstrap import Interval, generator
from ceteris.verdict.statistics import ALPHA, rounded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Scores = NDArray[Any]

RESAMPLES = 2000


class Estimate(NamedTuple):
    """A number with its 95 % interval; None below two seeds."""

    value: float
    interval: Interval | None


def iqm(scores_NT: Scores) -> float:
    """Mean of the middle half of all scores."""
    from scipy.stats import trim_mean

    return float(trim_mean(scores_NT, 0.25, axis=None))


def improvement(first_NT: Scores, second_MT: Scores) -> float:
    """P(a run of the first scores above one of the second) on a task, ties counting half, averaged over tasks."""
    import numpy as np

    gaps = first_NT[:, None, :] - second_MT[None, :, :]
    return float((np.count_nonzero(gaps > 0) + np.count_nonzero(gaps == 0) / 2.0) / gaps.size)


def estimate(
    statistic: Callable[..., float], *arms: Scores, paired: bool = True, joint: bool = True, resamples: int = RESAMPLES
) -> Estimate:
    """A statistic of one or more arms with its stratified bootstrap interval.

    Args:
        paired: the arms' seeds are the same and are drawn together.
        joint: the tasks of a seed stay together.
    """
    import numpy as np

    value = rounded(statistic(*arms))
    if min(len(arm) for arm in arms) < 2:
        return Estimate(value, None)
    found = [statistic(*sample) for sample in _samples(arms, paired, joint, resamples)]
    low, high = np.quantile(found, [ALPHA / 2.0, 1.0 - ALPHA / 2.0])
    return Estimate(value, Interval(rounded(float(low)), rounded(float(high))))


def _samples(arms: tuple[Scores, ...], paired: bool, joint: bool, resamples: int) -> Iterator[list[Scores]]:
    import numpy as np

    random = generator()

    def rows(arm: Scores) -> Any:
        drawn = random.integers(0, len(arm), (len(arm), 1 if joint else arm.shape[1]))
        return np.broadcast_to(drawn, arm.shape)

    for _ in range(resamples):
        shared = rows(arms[0])
        yield [np.take_along_axis(arm, shared if paired else rows(arm), axis=0) for arm in arms]
