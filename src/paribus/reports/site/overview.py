"""The pages of all claims: the first page, the matrix of claims and scales, and every measured claim in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from paribus.reports.decision_accuracy import Prediction
from paribus.reports.effects import rate_stability
from paribus.reports.questions import sort_questions
from paribus.reports.site.claims import (
    CLAIMED,
    INTERVAL,
    NO_COST,
    ClaimLine,
    add_hours,
    describe_cost,
    describe_effects,
    describe_tuning,
    find_weakest,
    format_effect,
    format_hours,
    list_scales,
    tell_below,
)
from paribus.reports.site.collect import Entry
from paribus.reports.site.forest import make_forests
from paribus.reports.site.prediction import tell_prediction
from paribus.reports.site.searches import Search
from paribus.reports.tables.blocks import compare_costs, describe_marks
from paribus.reports.tables.evidence import OLDER
from paribus.reports.tables.html import render, render_page
from paribus.reports.tables.markdown import render_grid
from paribus.reports.tables.notes import find_changes
from paribus.reports.tables.schema import ClaimRow
from paribus.verdict.checks import SOLID
from paribus.verdict.claims import OWNERS, PAPER
from paribus.verdict.published import ids
from paribus.verdict.rules import NOT_RUN, WORDS, find_word

ABOUT_SCALES = {
    "test": "seconds, to see that a sweep works",
    "smoke": "minutes on two cores, too small for most claims",
    "cpu": "hours on two cores, mostly 2-layer models",
    "gpu": "a day at most on one GPU",
    "paper": "the paper's own setting",
}
_SAME = {"stable": "stable over scales", "changes": "changes with the scale"}
Measured = tuple[ClaimLine, Entry, ClaimRow]  # a claim with the largest table that measures it


def render_index(entries: Sequence[Entry], lines: Sequence[ClaimLine], searches: Sequence[Search]) -> bytes:
    """The page at index.html."""
    ran = sorted((line for line in lines if line.measured), key=lambda line: line.measured[-1][0].committed)
    yours = [entry for entry in entries if not entry.committed]
    scales = [one for one in reversed(list_scales(entries)) if any(entry.scale == one for entry in entries)]
    claimed = [line for line in lines if not line.of_twins]
    asides = []
    for scale in scales:
        judged = (pair for line in claimed for pair in line.entries)
        asides.append(tell_below([claim for entry, claim in judged if entry.scale == scale], scale))
    twins = Counter(claim.verdict for line in lines if line.of_twins for _, claim in line.entries)
    counts = "; ".join(f"{count} {verdict}" for verdict, count in sorted(twins.items()))
    asides.append(f"Not counted: A/A tests of two identical arms ({counts})." if twins else "")
    return render_page(
        "index.html",
        "index.html",
        "Paribus: claims and verdicts",
        scales={scale: ABOUT_SCALES[scale] for scale in scales if scale in ABOUT_SCALES},
        your_tables=yours,
        only_yours=len(yours) == len(entries),
        words=[word.name for word in WORDS.all() if word.name != NOT_RUN],
        counts=[
            _count_verdicts(scale, about, claimed, entries)
            for scale in scales
            for about in sort_questions(
                line.about for line in claimed if any(one.scale == scale for one, _ in line.entries)
            )
        ],
        claimed=CLAIMED,
        marks=describe_marks(),
        asides=[aside for aside in asides if aside],
        forests=make_forests(lines),
        filters={
            "verdict": ("every verdict", [word.name for word in WORDS.all()]),
            "scale": ("every scale", list_scales(entries)),
            "paper": ("every paper", sorted({line.authors for line in lines})),
            "whose": ("whoever's claim", [*OWNERS, CLAIMED]),
            "about": ("every question", sort_questions(line.about for line in lines)),
        },
        ran=[_describe_measured(line) for line in ran],
        waiting=[line for line in lines if not line.measured],
        papers=len(ids()) - len({entry.table.paper.table for entry in entries if entry.table.paper}),
        searches=searches,
    )


def _count_verdicts(scale: str, about: str, lines: Sequence[ClaimLine], entries: Sequence[Entry]) -> dict[str, Any]:
    """The verdicts on questions of a kind at a scale, {word: how many claims}, and what their runs cost; a cost that is
    not on record is empty.
    """
    asked = [pair for line in lines if line.about == about for pair in line.entries if pair[0].scale == scale]
    verdicts, places = [claim.verdict for _, claim in asked], {entry.place for entry, _ in asked}
    records = [record for entry in entries if entry.place in places for record in entry.records]
    hours = add_hours(records)
    decided = sum(find_word(verdict).decides for verdict in verdicts)
    each = format_hours({unit: value / decided for unit, value in hours.items()}) if decided else ""
    return {
        "scale": scale,
        "about": about,
        "verdicts": Counter(verdicts),
        "solid": sum(claim.strength == SOLID for _, claim in asked),
        "trained": format_hours(hours),
        "trained_per_claim": each,
        "tuned": describe_tuning(records),
    }


def _describe_measured(line: ClaimLine) -> dict[str, Any]:
    """A claim at the largest scale at which it was measured.

    `weakest`: the effect in margins that favors it least, to sort by; `stability`: empty if fewer than two scales
    decide.
    """
    entry, claim = line.measured[-1]
    arms = {arm for row in claim.contrasts for arm in row.arms}
    cost = describe_cost(record for record in entry.records if record.arm in arms)
    weakest = find_weakest(claim)
    return {
        "line": line,
        "entry": entry,
        "claim": claim,
        "effects": describe_effects(entry.table, claim),
        "weakest": f"{weakest[1]:.6g}" if weakest else "",
        "stability": _SAME.get(rate_stability([one.verdict for _, one in line.entries]), ""),
        "cost": cost or NO_COST,
    }


def render_scales(entries: Sequence[Entry], lines: Sequence[ClaimLine], prediction: Prediction | None) -> bytes:
    """The page at scales.html."""
    ordered = sorted(lines, key=lambda line: (line.of_twins, line.study, line.number))
    rows = []
    for line in ordered:
        cells = {}
        for entry, claim in line.entries:
            weakest, _ = find_weakest(claim) or (None, 0.0)
            effect = "" if weakest is None else format_effect(entry.table, weakest)
            cells[entry.scale] = {"claim": claim, "weakest": weakest, "effect": effect}
        if cells:
            rows.append((line, cells))
    return render_page(
        "scales.html",
        "scales.html",
        "Claims at every scale",
        interval=INTERVAL,
        scales=list_scales(entries),
        prediction=tell_prediction(prediction),
        rows=rows,
        waiting=[line for line in ordered if not line.entries],
    )


def render_overview(lines: Sequence[ClaimLine], prediction: Prediction | None) -> bytes:
    """The page at claims.md, for a repository or a paper's appendix.

    A section per scale, the largest first, with the counts of its verdicts and a list of claims per study; then whether
    small verdicts predict large ones.
    """
    measured = [(line, *line.measured[-1]) for line in lines if line.measured and not line.of_twins]
    scales: dict[tuple[int, str], list[Measured]] = {}
    for line, entry, claim in sorted(measured, key=lambda each: (each[0].study, each[0].number)):
        scales.setdefault(entry.order[1:], []).append((line, entry, claim))
    parts = [_describe_scale(scales[order]) for order in sorted(scales, reverse=True)]
    told = tell_prediction(prediction)
    grids = {}
    if told is not None:
        grids["group_grid"] = render_grid(told["group_names"], told["groups"])
        grids["column_grid"] = render_grid(told["column_names"], told["columns"])
    return render("claims.md", scales=parts, marks=describe_marks(), prediction=told, **grids).encode()


def _describe_scale(measured: Sequence[Measured]) -> dict[str, Any]:
    """The claims of a scale, in the order of their studies."""
    groups = {
        about: [claim for line, _, claim in measured if line.about == about]
        for about in sort_questions(line.about for line, _, _ in measured)
    }
    entries = {entry.place: entry for _, entry, _ in measured}
    return {
        "scale": measured[0][1].scale,
        "counts": {about: _tell_verdicts(claims) for about, claims in groups.items()},
        "aside": tell_below([claim for _, _, claim in measured]),
        "cost": describe_cost(record for entry in entries.values() for record in entry.records),
        "studies": [
            _describe_study(study, list(claims)) for study, claims in groupby(measured, key=lambda each: each[0].study)
        ],
    }


def _tell_verdicts(claims: Sequence[ClaimRow]) -> str:
    """Such as `48 claims: 11 reproduced (2 solid), 3 contradicted, 1 equivalent, 33 undecided`."""
    parts = []
    for word in WORDS.all():
        said = [claim for claim in claims if claim.verdict == word.name]
        solid = f" ({sum(claim.strength == SOLID for claim in said)} solid)" if said and word.decides else ""
        parts += [f"{len(said)} {word.name}{solid}"] if word.name != NOT_RUN else []
    return f"{len(claims)} claims: {', '.join(parts)}"


def _describe_study(study: str, measured: Sequence[Measured]) -> dict[str, Any]:
    table = measured[0][1].table
    remarks = [table.title] if table.title else []
    remarks += find_changes(table.notes)
    if any(note.startswith(OLDER) for note in table.notes):
        remarks.append("The runs were made under another version of the sweep file.")
    claims = []
    for line, entry, claim in measured:
        paper = line.authors if line.paper else "the paper"
        claims.append({
            "said": line.claim.says or f"`{line.claim.text}`",
            "owner": paper if line.claim.whose == PAPER else "ours",
            "verdict": claim.verdict.capitalize(),
            "qualified": claim.word.removeprefix(claim.verdict),
            "effects": describe_effects(entry.table, claim),
            "costs": compare_costs(entry.table, claim),
        })  # fmt: skip
    return {"name": study, "remarks": remarks, "claims": claims}
