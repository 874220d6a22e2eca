"""From contrasts to verdicts: one conjunction per claim, one family of claims per table (`family.py`).

A verdict is read off the t interval at the level that the family leaves to its claim, or at the look's level if
seeds were added until the claims were decided (`sequential.py`). This interval is the one that is printed;
`rules/common.py` says which interval gives which word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from paribus.core.files import at_scale
from paribus.verdict.contrast import Contrast, Rates, find_rates
from paribus.verdict.family import Family, Shares, find_levels, make_family, share_out
from paribus.verdict.metrics import lower_is_better
from paribus.verdict.power import MOST_SEEDS, Range, detectable, find_range, join_ranges, seeds_needed
from paribus.verdict.rules import CONTRADICTED, EQUIVALENT, NOT_RUN, REPRODUCED, UNDECIDED, find_word, judge
from paribus.verdict.sequential import Looks
from paribus.verdict.statistics import ALPHA, PAIRED, rounded

NO_SEED = "no seed is done in both arms"
NO_COLUMN = "none of its columns was run"


class Ends(NamedTuple):
    """An interval of the difference, and its level, such as 0.95."""

    low: float
    high: float
    level: float


@dataclass(frozen=True)
class Ruling:
    """The verdict of a contrast.

    p_claim: the smallest level of its claim at which its interval decides; p_holm: that over the whole table, all looks
    included. ends: the interval that the verdict was read off. seeds: about how many would decide; None: not known, or
    more than can be run; range: between how many, if effect and spread are as uncertain as they are. detectable: the
    smallest distance from its boundary (in the metric's unit) that its n would have decided with a chance of 80%.
    more: whether more seeds may yet decide it.
    """

    verdict: str
    p_claim: float | None = None
    p_holm: float | None = None
    ends: Ends | None = None
    seeds: int | None = None
    range: Range | None = None
    detectable: float | None = None
    reason: str = ""
    more: bool = False


@dataclass(frozen=True)
class Outcome:
    """The verdict of a claim over its contrasts.

    p: the smallest error rate of the whole table at which it is decided; None if no contrast could. range: of seeds
    that would decide it.
    """

    verdict: str
    seeds: int | None
    reason: str
    more: bool = False  # whether more seeds may yet decide it
    range: Range | None = None
    p: float | None = None
    rulings: tuple[Ruling, ...] = ()

    def describe(self, scale: str, verdict: str) -> str:
        """The qualified verdict in words, such as "undecided (1 of 6 columns) at smoke scale (needs 9 to 40 seeds)"."""
        return f"{verdict}{at_scale(scale)}" + (f" ({self.reason})" if self.reason else "")


def rule(
    claims: Sequence[Sequence[Contrast]], looks: Looks | None = None, count_seeds: bool = True, part: float = 1.0
) -> list[Outcome]:
    """The verdicts on all claims of a table, each given as its contrasts, in order. Every measured contrast counts.

    Contrasts of a claim that is not reproduced on all of them are read off intervals that hold for all at once.

    Args:
        looks: when the table was looked at, if seeds were added until its claims were decided.
        count_seeds: whether to say how many seeds would decide an open contrast, which takes most of the time.
        part: the part of the table's error rate that belongs to its claims.
    """
    shares = share_out(claims)
    rates = [[find_rates(contrast, looks) for contrast in claim] for claim in claims]
    levels = [find_levels(of_claim or [Rates()], share) for of_claim, share in zip(rates, shares, strict=True)]
    family = make_family(levels, shares, part)
    outcomes = []
    for claim, of_claim, share, level in zip(claims, rates, shares, levels, strict=True):
        outcome = combine(ClaimJudge(share, family, looks, count_seeds).rule_all(claim, of_claim))
        if outcome.verdict != REPRODUCED:
            wide = share._replace(up=share.apart)
            shown = combine(ClaimJudge(wide, family, looks, count_seeds).rule_all(claim, of_claim))
            outcome = shown if outcome.verdict == EQUIVALENT else replace(outcome, rulings=shown.rulings)
        if share.place is not None:
            # No p if only a smaller error rate than the table's would decide the claim: some of its intervals are then
            # too wide to be within the margin, and at the table's rate they are within it.
            p = family.adjust(level.first)
            outcome = replace(outcome, p=p if find_word(outcome.verdict).decides or p > ALPHA else None)
        outcomes.append(outcome)
    return outcomes


@dataclass(frozen=True)
class ClaimJudge:
    """Rules on the contrasts of one claim."""

    shares: Shares
    family: Family
    looks: Looks | None
    count_seeds: bool

    def rule_all(self, claim: Sequence[Contrast], rates: Sequence[Rates]) -> list[Ruling]:
        """The verdicts of all contrasts of the claim."""
        return [self.rule(contrast, of_contrast) for contrast, of_contrast in zip(claim, rates, strict=True)]

    def rule(self, contrast: Contrast, rates: Rates) -> Ruling:
        """The verdict of one contrast, with the interval that it was read off."""
        if not contrast.judged:
            return _rule_unjudged(contrast)
        word, share = self._choose(contrast, rates)
        level = self._find_level(contrast, share)
        first = min(1.0, self.shares.up * rates.up, self.shares.apart * min(rates.down, rates.inside))
        ruling = Ruling(word, first, self.family.adjust(first), find_ends(contrast, level or ALPHA))
        if word == UNDECIDED:
            return self._leave_open(contrast, ruling)
        return replace(ruling, detectable=_find_detectable(contrast, level), reason=contrast.mention_diverged())

    def _choose(self, contrast: Contrast, rates: Rates) -> tuple[str, int]:
        """(the word, by what the claim's level is divided for its interval).

        An interval within the margin of a `>` claim says at most that the arms are equivalent, and only the wide one
        may say that: so a claim is never reproduced by an interval that is.
        """
        wide, narrow, level = self.shares.apart, self.shares.up, min(self.family.level, contrast.level)
        read = self._read(contrast, wide)
        if read not in (REPRODUCED, CONTRADICTED, EQUIVALENT, UNDECIDED):
            return read, wide
        if wide * rates.inside <= level:
            return EQUIVALENT, wide
        for share in (narrow, wide):
            if share * rates.up <= level and self._read(contrast, share) != EQUIVALENT:
                return REPRODUCED, share
        apart = wide * rates.down <= level and read != EQUIVALENT
        return (CONTRADICTED if apart else UNDECIDED), wide

    def _find_level(self, contrast: Contrast, share: int) -> float:
        """The level of an interval; 0 before the first look."""
        level = min(self.family.level, contrast.level) / share
        return level if self.looks is None else self.looks.level(level, contrast.difference.n)

    def _read(self, contrast: Contrast, share: int) -> str:
        """What an interval says, whatever the control."""
        level = self._find_level(contrast, share)
        if contrast.barred is not None or level == 0.0:
            return UNDECIDED
        low, high, _ = find_ends(contrast, level)
        low, high = (-high, -low) if lower_is_better(contrast.column) else (low, high)
        return judge(contrast.pair.relation, low, high, contrast.margin)

    def _leave_open(self, contrast: Contrast, ruling: Ruling) -> Ruling:
        """An undecided contrast with the reason, and with what would decide it."""
        narrow, wide = self._read(contrast, self.shares.up), self._read(contrast, self.shares.apart)
        held = narrow if narrow == REPRODUCED else wide  # the word that only the control withholds, if any
        if contrast.barred is not None:
            return replace(ruling, reason=contrast.barred)
        if self._find_level(contrast, 1) == 0.0:
            return replace(ruling, reason="too few seeds for the first look", more=True)
        if find_word(held).decides and (why := contrast.explain_diverged(held)):
            return replace(ruling, reason=why)
        if find_word(held).decides:
            return replace(ruling, reason=contrast.explain_control(held), more=contrast.controlled)
        if not self.count_seeds:
            return replace(ruling, more=True)
        near = judge(contrast.pair.relation, contrast.benefit, contrast.benefit, contrast.margin)
        level = self._find_level(contrast, self.shares.up if near == REPRODUCED else self.shares.apart)
        return _count_seeds(contrast, ruling, level)


def find_ends(contrast: Contrast, level: float) -> Ends:
    """The t interval of the difference that errs at rate `level`."""
    low, high = contrast.difference.interval(level)
    assert low is not None
    assert high is not None
    return Ends(low, high, rounded(1.0 - level))


def _rule_unjudged(contrast: Contrast) -> Ruling:
    difference = contrast.difference
    if why := contrast.explain_all_diverged():
        return Ruling(UNDECIDED, reason=why)
    if difference.n == 0:
        return Ruling(NOT_RUN, reason=contrast.absent or NO_SEED)
    if difference.n == 1:
        one = "seed" if difference.pairing == PAIRED else f"run of {contrast.fewer}"
        return Ruling(UNDECIDED, reason=contrast.barred or f"one {one} has no interval", more=contrast.barred is None)
    if difference.pairing != PAIRED:
        return Ruling(UNDECIDED, reason="the runs of each arm give the same number: no spread to judge by")
    same = "give the same number in both arms" if contrast.benefit == 0.0 else "differ by the same amount"
    return Ruling(UNDECIDED, reason=f"all seeds {same}: no spread to judge by")


def _count_seeds(contrast: Contrast, ruling: Ruling, level: float) -> Ruling:
    """How many seeds would decide an open contrast, at the level of its interval."""
    difference = contrast.difference
    seen = _find_detectable(contrast, level)
    seeds = seeds_needed(contrast.routes, difference.sd or 0.0, level, difference.df_per_seed)
    span = find_range(contrast.routes, difference, level)
    if span is None:
        return replace(ruling, detectable=seen, reason=f"needs more than {MOST_SEEDS} seeds", more=True)
    seeds = None if seeds is None else max(seeds, difference.n + 1)
    return replace(ruling, seeds=seeds, range=span, detectable=seen, reason=str(span), more=True)


def _find_detectable(contrast: Contrast, level: float) -> float | None:
    return detectable(contrast.difference.error or 0.0, contrast.difference.df, level)


def combine(rulings: Sequence[Ruling]) -> Outcome:
    """A claim is as good as its weakest contrast.

    One contradicted contrast contradicts it. Then undecided (or not run) weighs more than equivalent, and equivalent
    more than reproduced (`rules.Word.weight`).
    """
    if all(ruling.verdict == NOT_RUN for ruling in rulings):
        reasons = dict.fromkeys(ruling.reason for ruling in rulings if ruling.reason != NO_SEED)
        return Outcome(NOT_RUN, None, "; ".join(reasons) or (NO_SEED if rulings else NO_COLUMN), rulings=tuple(rulings))
    heaviest = max((find_word(ruling.verdict) for ruling in rulings), key=lambda word: word.weight)
    if heaviest.decides:
        mentions = dict.fromkeys(r.reason for r in rulings if r.reason and find_word(r.verdict).decides)
        return Outcome(heaviest.name, None, "; ".join(mentions), rulings=tuple(rulings))
    waiting = [ruling for ruling in rulings if not find_word(ruling.verdict).decides]
    return replace(_wait_for(waiting), rulings=tuple(rulings))


def _wait_for(waiting: Sequence[Ruling]) -> Outcome:
    """An undecided claim from its open contrasts: the most demanding one speaks."""
    more = any(ruling.more for ruling in waiting)
    known = [ruling.range for ruling in waiting if ruling.range is not None]
    if len(known) < len(waiting):
        reason = next(ruling.reason for ruling in waiting if ruling.range is None)
        return Outcome(UNDECIDED, None, reason, more)
    seeds = [ruling.seeds for ruling in waiting]
    span = join_ranges(known)
    return Outcome(UNDECIDED, None if None in seeds else max(one or 0 for one in seeds), str(span), more, span)
