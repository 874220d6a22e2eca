"""Every measured claim as a Markdown page, for a repository or a paper's appendix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from paribus.reports.rendering import render
from paribus.reports.site.claims import Line, describe_effects, tell_below
from paribus.reports.site.collect import Entry
from paribus.reports.site.cost import describe_cost
from paribus.reports.tables.blocks import compare_costs
from paribus.reports.tables.evidence import OLDER
from paribus.reports.tables.notes import REVISED
from paribus.reports.tables.schema import ClaimRow
from paribus.verdict.claims import PAPER
from paribus.verdict.words import NOT_RUN, WORDS

_Found = tuple[Line, Entry, ClaimRow]  # a claim with the largest table that measures it


def render_overview(lines: Sequence[Line]) -> bytes:
    """A section per scale, the largest first, with the counts of its verdicts and a list of claims per study."""
    found = [(line, *line.measured[-1]) for line in lines if line.measured and not line.of_twins]
    scales: dict[tuple[int, str], list[_Found]] = {}
    for each in sorted(found, key=lambda each: (each[0].study, each[0].number)):
        scales.setdefault(each[1].order[1:], []).append(each)
    parts = [_describe_scale(scales[order]) for order in sorted(scales, reverse=True)]
    return render("claims.md", scales=parts).encode()


def _describe_scale(found: Sequence[_Found]) -> dict[str, Any]:
    """The claims of a scale, in the order of their studies."""
    counts = Counter(claim.verdict for _, _, claim in found)
    entries = {entry.place: entry for _, entry, _ in found}
    return {
        "scale": found[0][1].scale,
        "count": len(found),
        "verdicts": [f"{counts[word.name]} {word.name}" for word in WORDS.all() if word.name != NOT_RUN],
        "below": tell_below([claim for _, _, claim in found]),
        "cost": describe_cost(record for entry in entries.values() for record in entry.found.records),
        "studies": [
            _describe_study(study, list(claims)) for study, claims in groupby(found, key=lambda each: each[0].study)
        ],
    }


def _describe_study(study: str, found: Sequence[_Found]) -> dict[str, Any]:
    table = found[0][1].table
    remarks = [table.title] if table.title else []
    remarks += [note for note in table.notes if note.startswith(REVISED)]
    if any(note.startswith(OLDER) for note in table.notes):
        remarks.append("The runs were made under another version of the sweep file.")
    return {"name": study, "remarks": remarks, "claims": [_describe_claim(*each) for each in found]}


def _describe_claim(line: Line, entry: Entry, claim: ClaimRow) -> dict[str, Any]:
    paper = line.authors if line.paper else "the paper"
    return {
        "said": line.claim.says or f"`{line.claim.text}`",
        "owner": paper if line.claim.whose == PAPER else "ours",
        "verdict": claim.verdict.capitalize(),
        "qualified": claim.word.removeprefix(claim.verdict),
        "effects": describe_effects(entry.table, claim),
        "costs": compare_costs(entry.table, claim),
    }
