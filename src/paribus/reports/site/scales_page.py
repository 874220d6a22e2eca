"""The matrix of claims and scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from paribus.reports.rendering import render_page
from paribus.reports.site.claims import INTERVAL, Line, find_weakest, format_effect, list_scales
from paribus.reports.site.collect import Entry
from paribus.reports.tables.schema import ClaimRow, ContrastRow


class Cell(NamedTuple):
    """A claim at a scale, with the contrast that favors it least and its effect, if there is any."""

    claim: ClaimRow
    weakest: ContrastRow | None
    effect: str


def render_scales(entries: Sequence[Entry], lines: Sequence[Line]) -> bytes:
    """The page at scales.html."""
    ordered = sorted(lines, key=lambda line: (line.of_twins, line.study, line.number))
    return render_page(
        "scales.html",
        "scales.html",
        "Claims at every scale",
        interval=INTERVAL,
        scales=list_scales(entries),
        rows=[
            (line, {entry.scale: _make_cell(entry, claim) for entry, claim in line.entries})
            for line in ordered
            if line.entries
        ],
        waiting=[line for line in ordered if not line.entries],
    )


def _make_cell(entry: Entry, claim: ClaimRow) -> Cell:
    weakest = find_weakest(claim)
    if weakest is None:
        return Cell(claim, None, "")
    row, _ = weakest
    return Cell(claim, row, format_effect(entry.table, row))
