"""All claims at once: the matrix of claims and scales, and every measured claim as a Markdown page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

from paribus.reports.rendering import render, render_page
from paribus.reports.site.claims import (
    INTERVAL,
    ClaimLine,
    describe_effects,
    find_weakest,
    format_effect,
    list_scales,
    tell_below,
)
from paribus.reports.site.collect import Entry
from paribus.reports.site.cost import describe_cost
from paribus.reports.tables.blocks import compare_costs
from paribus.reports.tables.evidence import OLDER
from paribus.reports.tables.notes import REVISED
from paribus.reports.tables.schema import ClaimRow, ContrastRow
from paribus.verdict.claims import PAPER
from paribus.verdict.words import NOT_RUN, WORDS

Measured = tuple[ClaimLine, Entry, ClaimRow]  # a claim with the largest table that measures it


class ScaleCell(NamedTuple):
    """A claim at a scale, with the contrast that favors it least and its effect, if there is any."""

    claim: ClaimRow
    weakest: ContrastRow | None
    effect: str


def render_scales(entries: Sequence[Entry], lines: Sequence[ClaimLine]) -> bytes:
    """The page at scales.html."""
    ordered = sorted(lines, key=lambda line: (line.of_twins, line.study, line.number))
    rows = []
    for line in ordered:
        cells = {}
        for entry, claim in line.entries:
            weakest, _ = find_weakest(claim) or (None, 0.0)
            effect = "" if weakest is None else format_effect(entry.table, weakest)
            cells[entry.scale] = ScaleCell(claim, weakest, effect)
        if cells:
            rows.append((line, cells))
    return render_page(
        "scales.html",
        "scales.html",
        "Claims at every scale",
        interval=INTERVAL,
        scales=list_scales(entries),
        rows=rows,
        waiting=[line for line in ordered if not line.entries],
    )


def render_overview(lines: Sequence[ClaimLine]) -> bytes:
    """The page at claims.md, for a repository or a paper's appendix.

    A section per scale, the largest first, with the counts of its verdicts and a list of claims per study.
    """
    measured = [(line, *line.measured[-1]) for line in lines if line.measured and not line.of_twins]
    scales: dict[tuple[int, str], list[Measured]] = {}
    for line, entry, claim in sorted(measured, key=lambda each: (each[0].study, each[0].number)):
        scales.setdefault(entry.order[1:], []).append((line, entry, claim))
    parts = [_describe_scale(scales[order]) for order in sorted(scales, reverse=True)]
    return render("claims.md", scales=parts).encode()


def _describe_scale(measured: Sequence[Measured]) -> dict[str, Any]:
    """The claims of a scale, in the order of their studies."""
    counts = Counter(claim.verdict for _, _, claim in measured)
    entries = {entry.place: entry for _, entry, _ in measured}
    return {
        "scale": measured[0][1].scale,
        "count": len(measured),
        "verdicts": [f"{counts[word.name]} {word.name}" for word in WORDS.all() if word.name != NOT_RUN],
        "below": tell_below([claim for _, _, claim in measured]),
        "cost": describe_cost(record for entry in entries.values() for record in entry.records),
        "studies": [
            _describe_study(study, list(claims)) for study, claims in groupby(measured, key=lambda each: each[0].study)
        ],
    }


def _describe_study(study: str, measured: Sequence[Measured]) -> dict[str, Any]:
    table = measured[0][1].table
    remarks = [table.title] if table.title else []
    remarks += [note for note in table.notes if note.startswith(REVISED)]
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
