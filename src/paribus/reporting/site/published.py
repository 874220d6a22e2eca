"""The pages of the published tables: numbers as printed, with source, flags, and our own tables of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from html import escape

from paribus.reporting.site.claims import render_arxiv
from paribus.reporting.site.collect import Entry
from paribus.reporting.site.frame import Row, render_bullets, render_frame, render_link, render_list, render_search
from paribus.reporting.tables.blocks import Block, Text
from paribus.reporting.tables.html import render_block
from paribus.sweeps.sweep import Sweep
from paribus.verdict.published import PublishedTable, ids, numbers, row_flags, table

COLUMNS = {"id": "table", "source": "source", "claim": "the paper's claim", "here": "here"}


def render_atlas(entries: Sequence[Entry], sweeps: Mapping[str, Sweep]) -> Iterator[tuple[str, bytes]]:
    """(path, content) of the list and of each published table."""
    uses = {name: _list_uses(name, entries, sweeps) for name in ids()}
    tables = [table(name) for name in ids()]
    papers = sorted({_name_paper(entry) for entry in tables})
    yield "published/index.html", render_frame("published/index.html", "Published tables", [
        "<h1>Published tables</h1>",
        f'<p class="lead">{len(tables)} tables of papers, with numbers as printed; flags name misprints, single '
        "sources and numbers from memory.</p>",
        render_search({"paper": ("every paper", papers)}),
        *_render_lists(tables, uses, {entry.table.paper.table for entry in entries if entry.table.paper}),
    ])  # fmt: skip
    for entry in tables:
        path = f"published/{entry.id}.html"
        yield path, render_frame(path, f"{entry.id}: {entry.paper}", _render_body(entry, uses[entry.id]))


def _render_lists(
    tables: Sequence[PublishedTable], uses: Mapping[str, Sequence[str]], made: Collection[str]
) -> Iterator[str]:
    """The published tables that were run here, then the others, folded."""
    rows = {entry.id: _render_row(entry, uses[entry.id]) for entry in tables}
    here, others = (
        [row for name, row in rows.items() if name in made],
        [row for name, row in rows.items() if name not in made],
    )
    if here:
        yield render_list(COLUMNS, here, "Published tables that were run here")
    if others:
        listed = render_list(COLUMNS, others, "Published tables that were not run here")
        yield f"<details><summary>{len(others)} tables that were not run here</summary>{listed}</details>"


def _list_uses(name: str, entries: Sequence[Entry], sweeps: Mapping[str, Sweep]) -> list[str]:
    """Links to our tables of a published one; sweeps without a table by name."""
    made = [entry for entry in entries if entry.table.paper and entry.table.paper.table == name]
    links = [render_link(f"../{entry.place}/index.html", f"{entry.study} at {entry.scale} scale") for entry in made]
    studies = {entry.study for entry in made}
    waiting = [s.study for s in sweeps.values() if s.published.get("table") == name and s.study not in studies]
    return links + [f"{escape(study)} (not run)" for study in sorted(waiting)]


def _render_row(entry: PublishedTable, uses: Sequence[str]) -> Row:
    text = " ".join([entry.id, entry.paper, entry.source, entry.claim, *entry.flags]).lower()
    cells = [render_link(f"{entry.id}.html", entry.id), escape(entry.source), escape(entry.claim), "<br>".join(uses)]
    return Row(cells, {"text": text, "paper": _name_paper(entry)})


def _name_paper(entry: PublishedTable) -> str:
    return entry.authors_year.partition(" (")[0]


def _render_body(entry: PublishedTable, uses: Sequence[str]) -> Iterator[str]:
    yield f'<p class="crumbs">{render_link("index.html", "Published tables")} / {escape(entry.id)}</p>'
    yield f"<h1>{escape(entry.paper)}</h1>"
    yield f"<p>{escape(entry.authors_year)}, {escape(entry.table)}, {render_arxiv(entry)}</p>"
    yield f'<p class="claim">{escape(entry.claim)}</p>'
    yield f"<p>Setting: {escape(entry.setting)}</p>"
    yield render_block(_make_block(entry))
    flags = row_flags(entry)
    yield render_bullets(f"[{at}] {flag}" for at, flag in enumerate(flags, 1)) if flags else ""
    yield "<h2>Flags and sources</h2>"
    yield f"<p>{escape(entry.notes)}</p>" if entry.notes else ""
    found = [f"Flag: {flag}" for flag in entry.flags] or ["No flag on the table as a whole."]
    yield render_bullets([*found, *(f"Read in: {place}" for place in entry.verified)])
    yield "<h2>Here</h2>"
    yield (
        "<ul>" + "".join(f"<li>{use}</li>" for use in uses) + "</ul>" if uses else "<p>No sweep reproduces it yet.</p>"
    )


def _make_block(entry: PublishedTable) -> Block:
    header, rows, left = numbers(entry)
    return Block(entry.id, header, [[Text(text) for text in row] for row in rows], [], left)
