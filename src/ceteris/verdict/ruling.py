"""From contrasts to verdicts: Holm over the table, the truth table per contrast, the weakest link per claim."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ceteris.verdict.claims import Pair
from ceteris.verdict.metrics import lower_is_better
from ceteris.verdict.power import MOST_SEEDS, seeds_needed
from ceteris.verdict.statistics import ALPHA, Paired, holm, mean_sd, t_quantile, two_sided
from ceteris.verdict.truth import Verdict, boundaries, judge

NO_SEED = "no seed is done in both arms"


@dataclass(frozen=True)
class Contrast:
    """One pair on one column. `margin`: in the metric's unit; `barred`: why the column decides nothing, or None.

    `absent`: why one of the arms could not be run at all, or nothing.
    """

    column: str
    pair: Pair
    margin: float
    paired: Paired
    barred: str | None = None
    absent: str = ""

    @property
    def benefit(self) -> float:
        """The mean difference, turned so that up is better. Only where something was run."""
        mean = mean_sd(self.paired.differences)[0]
        return -mean if lower_is_better(self.column) else mean

    @property
    def sd(self) -> float | None:
        """Sample standard deviation of the differences; None below two."""
        return mean_sd(self.paired.differences)[1] if self.paired.differences else None

    @property
    def room(self) -> tuple[float, ...]:
        """Distances to the boundaries of the verdict that is nearest, nearest first."""
        return boundaries(self.pair.relation, self.benefit, self.margin)


@dataclass(frozen=True)
class Ruling:
    """The verdict of a contrast. p_claim: the smallest level at which it decides; p_holm: that over the whole table."""

    verdict: Verdict
    p_claim: float | None = None
    p_holm: float | None = None
    seeds: int | None = None  # about how many would decide; None: not known, or more than can be run
    reason: str = ""
    barred: bool = False


@dataclass(frozen=True)
class Outcome:
    """The verdict of a claim over its contrasts."""

    verdict: Verdict
    seeds: int | None
    reason: str

    def said(self, scale: str, silent: Sequence[str] = ()) -> str:
        """Such as "undecided at smoke scale (needs about 14 seeds)"; `silent`: columns that say nothing about it."""
        words = [self.reason] if self.reason else []
        words += [f"nothing said by {', '.join(silent)}"] if silent and self.verdict != "not run" else []
        return f"{self.verdict} at {scale} scale" + (f" ({'; '.join(words)})" if words else "")


def p_claim(contrast: Contrast) -> float | None:
    """The smallest alpha whose two-sided 1 - alpha interval decides the contrast; None where there is no interval."""
    if contrast.sd is None:
        return None
    room, n = contrast.room[0], len(contrast.paired.differences)
    if contrast.sd == 0.0:
        return None if contrast.benefit != 0.0 else float(room == 0.0)
    return two_sided(n, room * math.sqrt(n) / contrast.sd)


def rule(contrasts: Sequence[Contrast]) -> list[Ruling]:
    """Verdicts of all contrasts of a table, in order. Barred columns are no part of Holm's family."""
    tested = {at: p for at, c in enumerate(contrasts) if c.barred is None and (p := p_claim(c)) is not None}
    adjusted = dict(zip(tested, holm(list(tested.values())), strict=True))
    levels = _levels(tested)
    open_ones = sum(1 for p in adjusted.values() if p > ALPHA)
    rulings = []
    for at, contrast in enumerate(contrasts):
        if at not in tested:
            rulings.append(_untested(contrast))
        elif adjusted[at] > ALPHA:
            rulings.append(_open(contrast, tested[at], adjusted[at], ALPHA / open_ones))
        else:
            rulings.append(Ruling(_verdict(contrast, levels[at]), tested[at], adjusted[at]))
    return rulings


def _levels(tested: dict[int, float]) -> dict[int, float]:
    """{contrast: the level at which Holm's procedure looks at it}."""
    order = sorted(tested, key=tested.__getitem__)
    return {at: ALPHA / (len(order) - rank) for rank, at in enumerate(order)}


def _verdict(contrast: Contrast, alpha: float) -> Verdict:
    n, sd = len(contrast.paired.differences), contrast.sd or 0.0
    half = t_quantile(n, alpha) * sd / math.sqrt(n)
    return judge(contrast.pair.relation, contrast.benefit - half, contrast.benefit + half, contrast.margin)


def _untested(contrast: Contrast) -> Ruling:
    n = len(contrast.paired.differences)
    if n == 0:
        return Ruling("not run", reason=contrast.absent or NO_SEED, barred=contrast.barred is not None)
    if contrast.barred is not None:
        return Ruling("undecided", reason=contrast.barred, barred=True)
    if n == 1:
        return Ruling("undecided", reason="one seed has no interval")
    return Ruling("undecided", reason="all seeds differ by the same amount: no spread to judge by")


def _open(contrast: Contrast, p: float, adjusted: float, alpha: float) -> Ruling:
    seeds = seeds_needed(contrast.room, contrast.sd or 0.0, alpha)
    if seeds is None:
        return Ruling("undecided", p, adjusted, None, f"needs more than {MOST_SEEDS} seeds")
    seeds = max(seeds, len(contrast.paired.differences) + 1)
    return Ruling("undecided", p, adjusted, seeds, f"needs about {seeds} seeds")


def combine(rulings: Sequence[Ruling]) -> Outcome:
    """A claim is as good as its weakest contrast.

    One contradicted contrast contradicts it. Contrasts whose column decides nothing are left out, unless that leaves
    none. Then undecided (or not run) weighs more than equivalent, and equivalent more than reproduced.
    """
    if all(ruling.verdict == "not run" for ruling in rulings):
        return Outcome("not run", None, "; ".join(dict.fromkeys(r.reason for r in rulings if r.reason != NO_SEED)))
    able = [ruling for ruling in rulings if not ruling.barred]
    if not any(ruling.verdict != "not run" for ruling in able):
        reasons = dict.fromkeys(ruling.reason for ruling in rulings if ruling.barred and ruling.verdict != "not run")
        return Outcome("undecided", None, "; ".join(reasons))
    if any(ruling.verdict == "contradicted" for ruling in able):
        return Outcome("contradicted", None, "")
    waiting = [ruling for ruling in able if ruling.verdict in ("undecided", "not run")]
    if waiting:
        return Outcome("undecided", *_needed(waiting))
    equivalent = any(ruling.verdict == "equivalent" for ruling in able)
    return Outcome("equivalent" if equivalent else "reproduced", None, "")


def _needed(waiting: Sequence[Ruling]) -> tuple[int | None, str]:
    """(seeds, reason) of a claim from its open contrasts: the most demanding one speaks."""
    unknown = [ruling for ruling in waiting if ruling.seeds is None]
    if unknown:
        return None, unknown[0].reason
    seeds = max(ruling.seeds for ruling in waiting if ruling.seeds is not None)
    return seeds, f"needs about {seeds} seeds"
