"""Agreement between the order of a table's arms and the paper's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from paribus.verdict.bootstrap import Interval, percentile

FEWEST = 3  # arms with an order: two have none to speak of


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
