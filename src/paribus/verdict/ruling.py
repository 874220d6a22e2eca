"""From contrasts to verdicts: Holm over the table, the truth table per contrast, the weakest link per claim.

A verdict is read off the paired t interval at the level that the table's family leaves to its contrasts (`step_down`),
or at the look's level if seeds were added until the claims were decided (`sequential.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from paribus.verdict.claims import Pair
from paribus.verdict.metrics import lower_is_better
from paribus.verdict.power import MOST_SEEDS, detectable, seeds_needed
from paribus.verdict.sequential import Looks
from paribus.verdict.statistics import ALPHA, Paired, holm, mean_sd, t_quantile, two_sided
from paribus.verdict.words import NOT_RUN, UNDECIDED, find_boundaries, find_word, judge

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

    @cached_property
    def benefit(self) -> float:
        """The mean difference, turned so that up is better. Only if there are differences."""
        mean = mean_sd(self.paired.differences)[0]
        return -mean if lower_is_better(self.column) else mean

    @cached_property
    def sd(self) -> float | None:
        """Sample standard deviation of the differences; None below two."""
        return mean_sd(self.paired.differences)[1] if self.paired.differences else None

    @property
    def room(self) -> tuple[float, ...]:
        """Distances to the boundaries of the verdict that is nearest, nearest first."""
        return find_boundaries(self.pair.relation, self.benefit, self.margin)


@dataclass(frozen=True)
class Ruling:
    """The verdict of a contrast.

    p_claim: the smallest level at which its interval decides; p_holm: that over the whole table, all looks included.
    seeds: about how many would decide; None: not known, or more than can be run. detectable: the smallest distance
    from its boundary (in the metric's unit) that its n would have decided with a chance of 80%.
    more: whether more seeds may yet decide it.
    """

    verdict: str
    p_claim: float | None = None
    p_holm: float | None = None
    seeds: int | None = None
    detectable: float | None = None
    reason: str = ""
    barred: bool = False
    more: bool = False


@dataclass(frozen=True)
class Outcome:
    """The verdict of a claim over its contrasts."""

    verdict: str
    seeds: int | None
    reason: str
    more: bool = False  # whether more seeds may yet decide it

    def describe(self, scale: str, silent: Sequence[str] = ()) -> str:
        """Such as "undecided at smoke scale (needs about 14 seeds)"; `silent`: columns without evidence on it."""
        words = [self.reason] if self.reason else []
        words += [f"no evidence from {', '.join(silent)}"] if silent and self.verdict != NOT_RUN else []
        return f"{self.verdict} at {scale} scale" + (f" ({'; '.join(words)})" if words else "")


class Deciding(NamedTuple):
    """The smallest levels at which a contrast's interval first decides (`first`) and cannot decide more (`last`)."""

    first: float
    last: float


class Family(NamedTuple):
    """adjusted: of each contrast the smallest error rate of the whole table at which it is decided; level: the common
    level of their intervals at ALPHA. A contrast with adjusted > ALPHA is undecided.
    """

    adjusted: list[float]
    level: float


def step_down(contrasts: Sequence[Deciding]) -> Family:
    """Adjust for the number of contrasts; with `first` equal to `last` everywhere this is Holm 1979.

    A contrast may have more than one hypothesis to lose: a `>` claim with a margin is decided off zero or inside
    the margins. Its hypotheses "no difference" and "a difference of the margin or more" cannot both be true, so
    they need no share of the error rate each (Shaffer 1986). But while one of them is open the contrast can still
    go wrong, so its share must not be handed on: the divisor is the number of contrasts that can still change their
    verdict. Plain Holm, which hands the share on after any decision, lets up to 15% of such tables through (10
    contrasts, true difference zero or at the margin).
    """
    through = [0.0, *sorted(holm([one.last for one in contrasts]))]  # the error rate at which k of them have said all
    shares = [max(1, len(contrasts) - k) for k in range(len(through))]
    steps = list(zip(through, shares, strict=True))
    adjusted = [min(1.0, *(max(rate, one.first * share) for rate, share in steps)) for one in contrasts]
    return Family(adjusted, ALPHA / min(share for rate, share in steps if rate <= ALPHA))


def find_levels(contrast: Contrast) -> Deciding | None:
    """The levels at which the contrast's interval decides; None if there is no interval or no spread to judge by."""
    if contrast.sd is None or (contrast.sd == 0.0 and contrast.benefit != 0.0):
        return None
    size, margin = abs(contrast.benefit), contrast.margin
    if contrast.pair.relation != ">" or margin == 0.0:
        p = _p(contrast, contrast.room[0])
        return Deciding(p, p)
    off_zero, inside, beyond = (_p(contrast, room) for room in (size, margin - size, size - margin))
    return Deciding(min(off_zero, inside), min(max(off_zero, inside), beyond))


def _p(contrast: Contrast, room: float) -> float:
    """The smallest alpha whose two-sided 1 - alpha interval is less wide than this to either side; 1 for none."""
    n, sd = len(contrast.paired.differences), contrast.sd
    if not sd:
        return 0.0 if room > 0.0 else 1.0
    return two_sided(n, room * math.sqrt(n) / sd) if room > 0.0 else 1.0


def rule(contrasts: Sequence[Contrast], looks: Looks | None = None) -> list[Ruling]:
    """Verdicts of all contrasts of a table, in order. Barred columns are not part of the family.

    Args:
        looks: when the table was looked at, if seeds were added until its claims were decided.
    """
    tested = {at: found for at, c in enumerate(contrasts) if c.barred is None and (found := find_levels(c)) is not None}
    spent = {at: _spend(found, contrasts[at], looks) for at, found in tested.items()}
    family = step_down(list(spent.values()))
    adjusted = dict(zip(tested, family.adjusted, strict=True))
    return [
        _rule_tested(contrast, tested[at].first, adjusted[at], family.level, looks)
        if at in tested
        else _rule_untested(contrast)
        for at, contrast in enumerate(contrasts)
    ]


def _spend(found: Deciding, contrast: Contrast, looks: Looks | None) -> Deciding:
    n = len(contrast.paired.differences)
    return found if looks is None else Deciding(looks.p(found.first, n), looks.p(found.last, n))


def _rule_tested(contrast: Contrast, p: float, adjusted: float, level: float, looks: Looks | None) -> Ruling:
    n, sd = len(contrast.paired.differences), contrast.sd or 0.0
    own = level if looks is None else looks.level(level, n)
    if adjusted > ALPHA:
        return _leave_open(contrast, p, adjusted, own)
    half = t_quantile(n, own) * sd / math.sqrt(n)
    verdict = judge(contrast.pair.relation, contrast.benefit - half, contrast.benefit + half, contrast.margin)
    return Ruling(verdict, p, adjusted, None, detectable(sd, n, own))


def _rule_untested(contrast: Contrast) -> Ruling:
    n = len(contrast.paired.differences)
    if n == 0:
        return Ruling(NOT_RUN, reason=contrast.absent or NO_SEED, barred=contrast.barred is not None)
    if contrast.barred is not None:
        return Ruling(UNDECIDED, reason=contrast.barred, barred=True)
    if n == 1:
        return Ruling(UNDECIDED, reason="one seed has no interval", more=True)
    return Ruling(UNDECIDED, reason="all seeds differ by the same amount: no spread to judge by")


def _leave_open(contrast: Contrast, p: float, adjusted: float, level: float) -> Ruling:
    n, sd = len(contrast.paired.differences), contrast.sd or 0.0
    if level == 0.0:
        return Ruling(UNDECIDED, p, adjusted, reason="too few seeds for the first look", more=True)
    seeds, seen = seeds_needed(contrast.room, sd, level), detectable(sd, n, level)
    if seeds is None:
        return Ruling(UNDECIDED, p, adjusted, None, seen, f"needs more than {MOST_SEEDS} seeds", more=sd > 0.0)
    seeds = max(seeds, n + 1)
    return Ruling(UNDECIDED, p, adjusted, seeds, seen, f"needs about {seeds} seeds", more=True)


def combine(rulings: Sequence[Ruling]) -> Outcome:
    """A claim is as good as its weakest contrast.

    One contradicted contrast contradicts it. Contrasts whose column decides nothing are left out, unless that leaves
    none. Then undecided (or not run) weighs more than equivalent, and equivalent more than reproduced
    (`words.Word.weight`).
    """
    if all(ruling.verdict == NOT_RUN for ruling in rulings):
        return Outcome(NOT_RUN, None, "; ".join(dict.fromkeys(r.reason for r in rulings if r.reason != NO_SEED)))
    able = [ruling for ruling in rulings if not ruling.barred]
    if not any(ruling.verdict != NOT_RUN for ruling in able):
        reasons = dict.fromkeys(ruling.reason for ruling in rulings if ruling.barred and ruling.verdict != NOT_RUN)
        return Outcome(UNDECIDED, None, "; ".join(reasons))
    heaviest = max((find_word(ruling.verdict) for ruling in able), key=lambda word: word.weight)
    if heaviest.decides:
        return Outcome(heaviest.name, None, "")
    waiting = [ruling for ruling in able if not find_word(ruling.verdict).decides]
    return Outcome(UNDECIDED, *_count_needed(waiting), more=any(ruling.more for ruling in waiting))


def _count_needed(waiting: Sequence[Ruling]) -> tuple[int | None, str]:
    """(seeds, reason) of a claim from its open contrasts: the most demanding one speaks."""
    unknown = [ruling for ruling in waiting if ruling.seeds is None]
    if unknown:
        return None, unknown[0].reason
    seeds = max(ruling.seeds for ruling in waiting if ruling.seeds is not None)
    return seeds, f"needs about {seeds} seeds"
