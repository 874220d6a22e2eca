"""The pages of the published tables: numbers as printed, with source, flags, and our own tables of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from paribus.reports.site.collect import Entry
from paribus.reports.tables.blocks import Block, Text
from paribus.reports.tables.html import render_page
from paribus.sweeps.sweep import Sweep
from paribus.verdict.published import PublishedTable, ids, numbers, row_flags, table


class Use(NamedTuple):
    """Our table of a published one, below the folder of this page; `place` is empty of a sweep without a table."""

    text: str
    place: str = ""


class Listed(NamedTuple):
    """A published table in the list, with the words that a search looks through."""

    table: PublishedTable
    authors: str
    search_text: str
    uses: Sequence[Use]


def render_atlas(entries: Sequence[Entry], sweeps: Mapping[str, Sweep]) -> Iterator[tuple[str, bytes]]:
    """(path, content) of the list and of each published table."""
    listed = []
    for paper in map(table, ids()):
        text = " ".join([paper.id, paper.paper, paper.source, paper.claim, *paper.flags]).lower()
        listed.append(Listed(paper, paper.authors_year.partition(" (")[0], text, _list_uses(paper.id, entries, sweeps)))
    made = {entry.table.paper.table for entry in entries if entry.table.paper}
    path = "published/index.html"
    yield (
        path,
        render_page(
            "published_index.html",
            path,
            "Published tables",
            papers=sorted({one.authors for one in listed}),
            here=[one for one in listed if one.table.id in made],
            others=[one for one in listed if one.table.id not in made],
        ),
    )
    for one in listed:
        path = f"published/{one.table.id}.html"
        yield path, _render_table(path, one.table, one.uses)


def _list_uses(name: str, entries: Sequence[Entry], sweeps: Mapping[str, Sweep]) -> list[Use]:
    """Our tables of a published one, then the sweeps that have none."""
    made = [entry for entry in entries if entry.table.paper and entry.table.paper.table == name]
    studies = {entry.study for entry in made}
    waiting = [s.study for s in sweeps.values() if s.published.get("table") == name and s.study not in studies]
    return [
        *(Use(f"{entry.study} at {entry.scale} scale", f"../{entry.place}/index.html") for entry in made),
        *(Use(f"{study} (not run)") for study in sorted(waiting)),
    ]


def _render_table(path: str, entry: PublishedTable, uses: Sequence[Use]) -> bytes:
    header, rows, left = numbers(entry)
    flags = [f"Flag: {flag}" for flag in entry.flags] or ["No flag on the table as a whole."]
    return render_page(
        "published.html",
        path,
        f"{entry.id}: {entry.paper}",
        table=entry,
        block=Block(entry.id, header, [[Text(text) for text in row] for row in rows], [], left),
        row_flags=[f"[{at}] {flag}" for at, flag in enumerate(row_flags(entry), 1)],
        sources=[*flags, *(f"Read in: {place}" for place in entry.verified)],
        uses=uses,
    )
