"""A table as a whole: means over tasks, and whether the order of its arms is the paper's.

Interquartile mean and probability of improvement are those of rliable (Agarwal et al. 2021).

Scores are `scores_NT`: seeds x tasks, or many resamples of them, `scores_RNT`; the statistics work on either.
Intervals come from a bootstrap stratified by task. Here all tasks of a seed share one pre-training, so by default the
seeds are drawn once for all tasks; drawing them for each task by itself, as rliable does for runs that share nothing,
would take one pre-training for as many as there are tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from paribus.verdict.bootstrap import Interval, generator, percentile
from paribus.verdict.statistics import ALPHA, rounded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Scores = NDArray[Any]

RESAMPLES = 1000
FEWEST = 3  # arms with an order: two have none to speak of


class Estimate(NamedTuple):
    """A number with its 95% interval; None below two seeds."""

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
    """The resamples of each arm, `scores_RNT`."""
    import numpy as np

    random = generator()

    def rows(arm: Scores) -> Any:
        drawn = random.integers(0, len(arm), (resamples, len(arm), 1 if joint else arm.shape[1]))
        return np.broadcast_to(drawn, (resamples, *arm.shape))

    shared = rows(arms[0])
    return [np.take_along_axis(arm[None], shared if paired else rows(arm), axis=1) for arm in arms]


class Agreement(NamedTuple):
    """tau from -1 (reversed) to 1 (the same order); `n` seeds that all arms share; its 95% percentile interval."""

    tau: float
    interval: Interval | None
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
