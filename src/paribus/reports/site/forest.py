"""The forest plot: every measured contrast on one axis, effect over margin, turned so that right favors the claim."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from paribus.reports.effects import SignedEffect, measure_in_margins
from paribus.reports.site.claims import INTERVAL, ClaimLine, format_effect
from paribus.reports.tables.schema import ContrastRow, Table
from paribus.verdict.metrics import MEAN
from paribus.verdict.rules import NOT_RUN, WORDS, find_word

_TICKS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0)
_NAMED = 9  # as many ticks can have their numbers side by side
_GROUPS = {
    ">": ("Better", "the claim needs the whole interval right of zero"),
    "> by": ("Better by a margin", "the claim needs the whole interval right of one margin"),
    ">=": ("No worse", "the claim needs the whole interval right of minus one margin"),
    "~": ("The same", "the claim needs the whole interval within one margin of zero"),
}
_TWINS = ("A/A tests", "identical arms: any difference is chance")


class DrawnContrast(NamedTuple):
    """A contrast of a claim at a scale.

    `effect`: in margins; `below`: it is decided, and every arm is below a linear model; `among`: the claim has several
    on its column.
    """

    line: ClaimLine
    table: Table
    row: ContrastRow
    effect: SignedEffect
    below: bool
    among: bool


class Axis(NamedTuple):
    """Effects on percent of the width: linear within about one margin of zero, by orders of magnitude beyond."""

    low: float
    high: float

    def __call__(self, value: float) -> float:
        low, high, value = map(math.asinh, (self.low, self.high, value))
        return 100.0 * min(1.0, max(0.0, (value - low) / (high - low)))

    def list_named(self) -> list[float]:
        """The ticks with a number: on a wide axis, zero and powers of ten alone."""
        ticks = self.list_ticks()
        return ticks if len(ticks) <= _NAMED else [tick for tick in ticks if _is_power(tick)]

    def list_ticks(self) -> list[float]:
        """Round values inside."""
        both = sorted([0.0, *(sign * tick for tick in _TICKS for sign in (-1.0, 1.0))])
        return [tick for tick in both if self.low <= tick <= self.high]


def make_forests(lines: Sequence[ClaimLine]) -> list[dict[str, Any]]:
    """A plot of every contrast with a number, at each scale, as forest.html draws it.

    Contrasts that are undecided for another reason than too few seeds are folded away, unless there are no others.
    """
    contrasts = list_contrasts(lines)
    if not contrasts:
        return []
    barred = [one for one in contrasts if one.row.barred]
    plots = [_make_forest([one for one in contrasts if not one.row.barred] or barred, "Measured contrasts")]
    if 0 < len(barred) < len(contrasts):
        title = f"{len(barred)} more, undecided for another reason than too few seeds"
        plots.append(_make_forest(barred, title, folded=True))
    return plots


def list_contrasts(lines: Sequence[ClaimLine]) -> list[DrawnContrast]:
    """Every contrast with a number, at each scale."""
    drawn = []
    for line in lines:
        for entry, claim in line.entries:
            for row in claim.contrasts:
                if (effect := measure_in_margins(row)) is None:
                    continue
                below = row.column in claim.below or (row.column == MEAN and bool(claim.below))
                among = sum(other.column == row.column for other in claim.contrasts) > 1
                decided = find_word(row.verdict).decides
                drawn.append(DrawnContrast(line, entry.table, row, effect, decided and below, among))
    return drawn


def _make_forest(contrasts: Sequence[DrawnContrast], title: str, folded: bool = False) -> dict[str, Any]:
    """A plot with its key; `folded`: whether it opens at a click; all places are in percent of the axis."""
    ends = [end for one in contrasts for end in one.effect if end is not None]
    axis = Axis(min(-3.0, *ends) * 1.15, max(3.0, *ends) * 1.15)
    compared = [one for one in contrasts if not one.line.of_twins]
    groups = [(words, [one for one in compared if one.row.relation == sign]) for sign, words in _GROUPS.items()]
    groups.append((_TWINS, [one for one in contrasts if one.line.of_twins]))
    shown = {one.row.verdict for one in contrasts}
    return {
        "title": title,
        "folded": folded,
        "words": [word.name for word in WORDS.all() if word.name in shown and word.name != NOT_RUN],
        "interval": INTERVAL,
        "has_paper": any(one.effect.published is not None for one in contrasts),
        "has_bare": any(not one.row.margin for one in contrasts),
        "has_below": any(one.below for one in contrasts),
        "ticks": [axis(tick) for tick in axis.list_ticks()],
        # those that are no power of ten are hidden on a narrow page
        "numbers": [{"text": f"{tick:g}", "at": axis(tick), "power": _is_power(tick)} for tick in axis.list_named()],
        "zero": axis(0.0),
        "groups": [
            {
                "name": name,
                "needs": needs,
                "rows": [_make_row(one, axis) for one in sorted(group, key=lambda one: -one.effect.effect)],
            }
            for (name, needs), group in groups
            if group
        ],
    }


def _is_power(tick: float) -> bool:
    """Whether it is 0, 1, 10 and so on, or the negative of one."""
    return f"{abs(tick):g}".strip("0") in ("", "1")


def _make_row(one: DrawnContrast, axis: Axis) -> dict[str, Any]:
    """A contrast as it is drawn; `zone`: where the interval would reproduce the claim; `signs` refer to the key."""
    row, effect, margin = one.row, one.effect, 1.0 if one.row.margin else 0.0
    low = {">": 0.0, "> by": margin, ">=": -margin, "~": -margin}[row.relation]
    high = axis(margin) if row.relation == "~" else 100.0
    return {
        "line": one.line,
        "scale": one.table.scale,
        "contrast": row,
        "among": one.among,
        "size": format_effect(one.table, row),
        "signs": "*" * (not row.margin) + "†" * one.below,
        "said": row.verdict + (f": {row.reason}" if row.reason else ""),
        "zone": (axis(low), high),
        "interval": None if effect.low is None or effect.high is None else (axis(effect.low), axis(effect.high)),
        "effect": axis(effect.effect),
        "paper": None if effect.published is None else axis(effect.published),
    }
