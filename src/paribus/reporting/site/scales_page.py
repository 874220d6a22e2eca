"""The matrix of claims and scales."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from paribus.reporting.site.claims import INTERVAL, Line, find_weakest, format_effect, list_scales
from paribus.reporting.site.collect import Entry
from paribus.reporting.site.frame import Row, render_frame, render_link, render_list
from paribus.reporting.tables.html import render_scroll, render_verdict
from paribus.reporting.tables.schema import ClaimRow


def render_scales(entries: Sequence[Entry], lines: Sequence[Line]) -> bytes:
    """The page at scales.html."""
    return render_frame("scales.html", "Claims at every scale", _render_body(entries, lines))


def _render_body(entries: Sequence[Entry], lines: Sequence[Line]) -> Iterator[str]:
    ordered = sorted(lines, key=lambda line: (line.of_twins, line.study, line.number))
    ran, waiting = [line for line in ordered if line.entries], [line for line in ordered if not line.entries]
    yield "<h1>Claims at every scale</h1>"
    yield (
        '<p class="lead">Each claim with its verdict at each scale, and below it the contrast that favors it '
        f"least: + favors the arm that the claim names first. [Brackets]: {escape(INTERVAL)}. Nothing is carried from "
        "one scale to another.</p>"
    )
    scales = list_scales(entries)
    columns = {one: one for one in ("claim", *scales)}
    matrix = render_list(columns, [_render_row(line, scales) for line in ran], "Claims by scale", sortable=False)
    yield render_scroll(matrix, "Claims by scale")
    if waiting:
        items = "".join(f"<li>{_name(line)}</li>" for line in waiting)
        said = f"{len(waiting)} claims that were not run at any scale"
        yield f"<details><summary>{said}</summary><ul>{items}</ul></details>"


def _render_row(line: Line, scales: Sequence[str]) -> Row:
    found = {entry.scale: (entry, claim) for entry, claim in line.entries}
    return Row([_name(line), *(_render_cell(line, *found[one]) if one in found else "" for one in scales)], {})


def _name(line: Line) -> str:
    says = render_link(line.place, line.claim.says or line.claim.text)
    return f'<span class="say">{says}</span> <span class="small name">{escape(line.study)}</span>'


def _render_cell(line: Line, entry: Entry, claim: ClaimRow) -> str:
    place = f"{line.place}#{entry.scale}"
    verdict = render_verdict(claim.verdict, render_link(place, claim.word))
    weakest = find_weakest(claim)
    if weakest is None:
        return verdict
    row = weakest[0]
    below = f'<span class="small">{escape(row.column)}, n = {row.n}</span>'
    number = render_link(place, format_effect(entry.table, row))
    return f'{verdict}<span class="found name">{number}<br>{below}</span>'
