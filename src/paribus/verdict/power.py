"""How many seeds settle a claim, and what a number of seeds can see, by the rules of verdicts (`rules`).

Of a table, if the spread is what it looks like now; of an experiment before it is run, for an effect that is assumed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from paribus.core.errors import UserError
from paribus.verdict.rules import Relation, Route, find_routes, judge
from paribus.verdict.statistics import ALPHA, MeanDifference, t_quantile

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


def power(routes: Sequence[Route], error: float, df: float, alpha: float = ALPHA) -> float:
    """The chance that a two-sided 1 - alpha interval with this standard error is decided by one of at most two routes.

    Noncentral t for one boundary; else over the sample's standard deviation (Gauss-Legendre), since the mean does not
    depend on it.
    """
    import numpy as np
    from scipy.special import nctdtr, ndtr

    critical = t_quantile(df, alpha)
    if _has_one_boundary(routes) and not math.isnan(missed := nctdtr(df, routes[0].behind / error, critical)):
        return 1.0 - float(missed)  # scipy has none for huge distances
    spread, weights = _sample_spreads(df)
    half = critical * spread  # of the interval, in standard errors
    ends = [(half - route.behind / error, route.ahead / error - half) for route in routes]

    def chance(low: Any, high: Any) -> Any:
        return np.maximum(ndtr(high) - ndtr(low), 0.0)

    decided = sum(chance(low, high) for low, high in ends)
    if len(ends) == 2:
        (low, high), (other_low, other_high) = ends
        decided = decided - chance(np.maximum(low, other_low), np.minimum(high, other_high))
    return float((weights * decided).sum())


def _has_one_boundary(routes: Sequence[Route]) -> bool:
    return len(routes) == 1 and math.isinf(routes[0].ahead)


@cache
def _sample_spreads(df: float) -> tuple[Any, Any]:
    """A sample's standard deviation over the true one: its values and their probabilities, for integrals."""
    import numpy as np
    from scipy.special import chdtri

    nodes, weights = np.polynomial.legendre.leggauss(100)
    return np.sqrt(chdtri(df, (1.0 - nodes) / 2.0) / df), weights / 2.0


def seeds_needed(routes: Sequence[Route], sd: float, alpha: float = ALPHA, df_per_seed: float = 1.0) -> int | None:
    """The smallest number of seeds per arm with a chance of `POWER` for a decision; None above `MOST_SEEDS`.

    `sd`, `df_per_seed`: as in `MeanDifference`.
    """
    if sd == 0.0 or max(route.room for route in routes) <= 0.0:
        return None

    def enough(n: int) -> bool:
        error, df = sd / math.sqrt(n), df_per_seed * (n - 1)
        if _has_one_boundary(routes):
            return routes[0].behind / error >= _least(df, alpha)
        return power(routes, error, df, alpha) >= POWER

    low, high = 1, 2
    while not enough(high):
        if high >= MOST_SEEDS:
            return None
        low, high = high, min(2 * high, MOST_SEEDS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def find_range(routes: Sequence[Route], difference: MeanDifference, alpha: float = ALPHA) -> Range | None:
    """The least and the most `seeds_needed` in the 80% interval of the true distance over the true spread.

    Of the boundary that is nearest on the way with most room, by the noncentral t: both are as uncertain as the runs
    leave them. If there are two routes, one of them is short wherever the mean is, so that the spread matters
    by itself: both ends of its own 80% interval count. None if every case needs more than `MOST_SEEDS`.
    """
    import numpy as np
    from scipy.special import chdtri, nctdtrinc

    room = max(route.room for route in routes)
    sd, error, df = difference.sd, difference.error, difference.df
    if not sd or not error or room <= 0.0:
        return None
    tails = ((1.0 - LIKELY) / 2.0, (1.0 + LIKELY) / 2.0)
    far, near = (float(nctdtrinc(df, tail, room / error)) * error for tail in tails)
    spreads = [sd] if len(routes) == 1 else [sd * math.sqrt(df / chdtri(df, tail)) for tail in tails]
    cases = [_move(routes, room, size) for size in np.linspace(near, far, 2 * len(routes))]
    needed = [seeds_needed(case, spread, alpha, difference.df_per_seed) for case in cases for spread in spreads]
    known = [seeds for seeds in needed if seeds is not None]
    if not known:
        return None
    least = max(min(known), difference.n + 1)
    return Range(least, None if None in needed else max(*known, least))


def _move(routes: Sequence[Route], room: float, to: float) -> list[Route]:
    """The routes if the one with most room had another."""
    best = next(route for route in routes if route.room == room)
    shift = (min(to, (best.behind + best.ahead) / 2.0) - room) * (1.0 if best.behind == room else -1.0)
    return [Route(route.behind + shift, route.ahead - shift) for route in routes]


def detectable(error: float, df: float, alpha: float = ALPHA) -> float | None:
    """The smallest difference that is distinguished from zero with probability `POWER`; None without spread.

    A difference smaller than this that n seeds did not find is not evidence against it: "n = 5 could have seen 1.1
    points".
    """
    return float(f"{error * _least(df, alpha):.3g}") if error > 0.0 and df > 0 and alpha > 0.0 else None


@cache
def _least(df: float, alpha: float) -> float:
    """`detectable` in standard errors."""
    from scipy.optimize import brentq

    def excess(distance: float) -> float:
        return power([Route(distance)], 1.0, df, alpha) - POWER

    high = 1.0
    while excess(high) < 0.0:
        high *= 2.0
    return float(brentq(excess, 0.0, high, rtol=1e-9))


SHOWN = (3, 4, 5, 6, 8, 10, 15, 20)  # numbers of seeds whose chances are listed
MOST_ARMS = 1000


class Need(NamedTuple):
    """Of a claim: the verdict that the true effect leads to, and how many seeds decide it with a chance of 80%."""

    relation: Relation
    verdict: str
    seeds: int | None


class Chance(NamedTuple):
    """What n seeds can do: {claim: the chance that it is decided}, and the smallest effect seen with one of 80%."""

    n: int
    chances: dict[str, float]
    detectable: float | None


@dataclass(frozen=True)
class SeedPlan:
    """`arms` of which each but the first has a claim; `level`: the error rate that the claims leave to each."""

    sd: float
    effect: float
    margin: float
    arms: int
    unpaired: bool
    level: float
    needs: tuple[Need, ...]
    chances: tuple[Chance, ...]

    @property
    def seeds(self) -> int | None:
        """What the claim that A is better than B needs; None for more than 1,000."""
        return self.needs[0].seeds

    def __str__(self) -> str:
        claims = f" ({self.arms - 1} claims, {100 * self.level:.3g}% of the error rate of 5% for each)"
        spread = f"{self.sd:g} over the seeds of one arm" if self.unpaired else f"{self.sd:g} over shared seeds"
        lines = [
            f"If the difference between two arms is {self.effect:g}, with a standard deviation of {spread}"
            f"{claims if self.arms > 2 else ''}:"
        ]
        margin = f", margin {self.margin:g}" if self.margin else ""
        for need in self.needs:
            seeds = f"more than {MOST_SEEDS} seeds"
            if need.seeds is not None:
                seeds = f"{need.seeds} seeds per arm ({need.seeds * self.arms} runs)"
            lines.append(f"A {need.relation} B{margin}: {seeds}, most likely {need.verdict}")
        heads = [f"{'seeds':>5}", *(f"{f'A {need.relation} B{margin}':>28}" for need in self.needs), "detectable"]
        lines += ["", f"Chance of a verdict, and the smallest difference that is detected with a power of {POWER:.0%}:"]
        rows = ([f"{one.n:>5}", *(f"{p:>28.0%}" for p in one.chances.values()), f"{one.detectable or 0:>10.3g}"]
                for one in self.chances)  # fmt: skip
        return "\n".join([*lines, "  ".join(heads), *("  ".join(row) for row in rows)]) + "\n"


def plan_seeds(sd: float, effect: float, margin: float = 0.0, arms: int = 2, *, unpaired: bool = False) -> SeedPlan:
    """How many seeds decide whether A is better than B, no worse, or the same, if B is `effect` below A in truth.

    By the t interval that verdicts are read off.

    Args:
        sd: of the difference between two arms with the same seed, over seeds; if they are `unpaired`, of one arm. In
            the metric's unit, as effect and margin.
        unpaired: whether the seeds of two arms share nothing, as those of arms with equal spread.
        arms: with more than two, each but the first has a claim, and each claim its share of the error rate, as before
            any of them is decided.

    Raises:
        UserError: for values that no experiment has.
    """
    if not all(map(math.isfinite, (sd, effect, margin))) or sd <= 0.0 or margin < 0.0 or not 2 <= arms <= MOST_ARMS:
        mend = f"give a finite effect, sd above 0, a margin of 0 or more, and 2 to {MOST_ARMS} arms"
        raise UserError(f"sd={sd:g}, effect={effect:g}, margin={margin:g} and {arms} arms are not possible", mend)
    if not effect and not margin:
        raise UserError(
            "there is no difference to detect", "give an effect, or a margin within which the arms count as the same"
        )
    level = ALPHA / (arms - 1)
    of_two, df_per_seed = (math.sqrt(2.0) * sd, 2.0) if unpaired else (sd, 1.0)
    relations: tuple[Relation, ...] = (">", ">=", "~") if margin else (">",)
    routes = {relation: find_routes(relation, effect, margin) for relation in relations}
    needs = []
    for relation in relations:  # the verdict with most room: of `>` the sign, unless both margins are farther than zero
        apart = relation == ">" and 2.0 * abs(effect) >= margin
        verdict = judge(relation, effect, effect, 0.0 if apart else margin)
        needs.append(Need(relation, verdict, seeds_needed(routes[relation], of_two, level, df_per_seed)))
    chances = list[Chance]()
    for n in SHOWN:
        error, df = of_two / math.sqrt(n), df_per_seed * (n - 1)
        decided: dict[str, float] = {relation: power(routes[relation], error, df, level) for relation in relations}
        chances.append(Chance(n, decided, detectable(error, df, level)))
    return SeedPlan(sd, effect, margin, arms, unpaired, level, tuple(needs), tuple(chances))
