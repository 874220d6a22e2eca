"""The first page: the user's own tables, verdicts by scale, every contrast on one axis, then a row per claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from paribus.reports.ladder import rate_stability
from paribus.reports.rendering import render_page
from paribus.reports.site.claims import (
    CLAIMED,
    ClaimLine,
    Effect,
    describe_effects,
    find_weakest,
    list_scales,
    tell_below,
)
from paribus.reports.site.collect import Entry
from paribus.reports.site.cost import NO_COST, add_hours, describe_cost, describe_tuning, format_hours
from paribus.reports.site.forest import make_forests
from paribus.reports.site.searches import Search
from paribus.reports.tables.schema import ClaimRow
from paribus.verdict.claims import OWNERS
from paribus.verdict.published import ids
from paribus.verdict.words import NOT_RUN, WORDS, find_word

SCALES = {
    "test": "seconds, to see that a sweep works",
    "smoke": "minutes on two cores, too small for most claims",
    "cpu": "hours on two cores, mostly 2-layer models",
    "gpu": "a day at most on one GPU",
    "paper": "the paper's own setting",
}
_SAME = {"stable": "stable over scales", "changes": "changes with the scale"}


class ScaleRow(NamedTuple):
    """A scale's verdicts, {word: how many claims}, and what its runs cost; a cost that is not on record is empty."""

    scale: str
    verdicts: Mapping[str, int]
    trained: str
    trained_per_claim: str
    tuned: str


class MeasuredRow(NamedTuple):
    """A claim at the largest scale at which it was measured.

    `weakest`: the effect in margins that favors it least, to sort by; `stability`: empty if fewer than two scales
    decide.
    """

    line: ClaimLine
    entry: Entry
    claim: ClaimRow
    effects: Sequence[Effect]
    weakest: str
    stability: str
    cost: str


def render_index(entries: Sequence[Entry], lines: Sequence[ClaimLine], searches: Sequence[Search]) -> bytes:
    """The page at index.html."""
    ran = sorted((line for line in lines if line.measured), key=lambda line: line.measured[-1][0].committed)
    yours = [entry for entry in entries if not entry.committed]
    scales = [one for one in reversed(list_scales(entries)) if any(entry.scale == one for entry in entries)]
    claimed = [line for line in lines if not line.of_twins]
    return render_page(
        "index.html",
        "index.html",
        "Paribus: claims and verdicts",
        scales={scale: SCALES[scale] for scale in scales if scale in SCALES},
        your_tables=yours,
        only_yours=len(yours) == len(entries),
        words=[word.name for word in WORDS.all() if word.name != NOT_RUN],
        counts=[_count_verdicts(scale, claimed, entries) for scale in scales],
        claimed=CLAIMED,
        asides=_list_asides(scales, lines),
        forests=make_forests(lines),
        filters={
            "verdict": ("every verdict", [word.name for word in WORDS.all()]),
            "scale": ("every scale", list_scales(entries)),
            "paper": ("every paper", sorted({line.authors for line in lines})),
            "whose": ("whoever's claim", [*OWNERS, CLAIMED]),
        },
        ran=[_describe_measured(line) for line in ran],
        waiting=[line for line in lines if not line.measured],
        papers=len(ids()) - len({entry.table.paper.table for entry in entries if entry.table.paper}),
        searches=searches,
    )


def _count_verdicts(scale: str, lines: Sequence[ClaimLine], entries: Sequence[Entry]) -> ScaleRow:
    verdicts = [claim.verdict for line in lines for entry, claim in line.entries if entry.scale == scale]
    records = [record for entry in entries if entry.scale == scale for record in entry.records]
    hours = add_hours(records)
    decided = sum(find_word(verdict).decides for verdict in verdicts)
    each = format_hours({unit: value / decided for unit, value in hours.items()}) if decided else ""
    return ScaleRow(scale, Counter(verdicts), format_hours(hours), each, describe_tuning(records))


def _list_asides(scales: Sequence[str], lines: Sequence[ClaimLine]) -> list[str]:
    """Sentences on decided claims whose verdict a linear model qualifies, for each scale, and on identical arms."""
    asides = []
    for scale in scales:
        judged = (pair for line in lines if not line.of_twins for pair in line.entries)
        asides.append(tell_below([claim for entry, claim in judged if entry.scale == scale], scale))
    twins = Counter(claim.verdict for line in lines if line.of_twins for _, claim in line.entries)
    counts = "; ".join(f"{count} {verdict}" for verdict, count in sorted(twins.items()))
    asides.append(f"Not counted: A/A tests of two identical arms ({counts})." if twins else "")
    return [aside for aside in asides if aside]


def _describe_measured(line: ClaimLine) -> MeasuredRow:
    entry, claim = line.measured[-1]
    arms = {arm for row in claim.contrasts for arm in (row.arm, row.versus)}
    cost = describe_cost(record for record in entry.records if record.arm in arms)
    weakest = find_weakest(claim)
    return MeasuredRow(
        line,
        entry,
        claim,
        describe_effects(entry.table, claim),
        f"{weakest[1]:.6g}" if weakest else "",
        _SAME.get(rate_stability([one.verdict for _, one in line.entries]), ""),
        cost or NO_COST,
    )
