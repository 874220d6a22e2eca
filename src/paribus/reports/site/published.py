"""The pages of the published tables: numbers as printed, with source, flags, and our own tables of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from paribus.reports.site.collect import Entry
from paribus.reports.tables.blocks import Block, Text
from paribus.reports.tables.html import render_page
from paribus.sweeps.sweep import Sweep
from paribus.verdict.published import PublishedTable, ids, numbers, row_flags, table


def render_atlas(entries: Sequence[Entry], sweeps: Mapping[str, Sweep]) -> Iterator[tuple[str, bytes]]:
    """(path, content) of the list and of each published table."""
    made = {entry.table.paper.table for entry in entries if entry.table.paper}
    listed = []  # (table, its authors, the words that a search looks through, our tables of it)
    for paper in map(table, ids()):
        text = " ".join([paper.id, paper.paper, paper.source, paper.claim, *paper.flags]).lower()
        listed.append((paper, paper.authors_year.partition(" (")[0], text, _list_uses(paper.id, entries, sweeps)))
    path = "published/index.html"
    yield (
        path,
        render_page(
            "published_index.html",
            path,
            "Published tables",
            papers=sorted({authors for _, authors, _, _ in listed}),
            here=[one for one in listed if one[0].id in made],
            others=[one for one in listed if one[0].id not in made],
        ),
    )
    for paper, _, _, uses in listed:
        path = f"published/{paper.id}.html"
        yield path, _render_table(path, paper, uses)


def _list_uses(name: str, entries: Sequence[Entry], sweeps: Mapping[str, Sweep]) -> list[dict[str, str]]:
    """Our tables of a published one, below the folder of its page, then the sweeps that have none."""
    made = [entry for entry in entries if entry.table.paper and entry.table.paper.table == name]
    studies = {entry.study for entry in made}
    waiting = [s.study for s in sweeps.values() if s.published.get("table") == name and s.study not in studies]
    return [
        *({"text": f"{each.study} at {each.scale} scale", "place": f"../{each.place}/index.html"} for each in made),
        *({"text": f"{study} (not run)", "place": ""} for study in sorted(waiting)),
    ]


def _render_table(path: str, entry: PublishedTable, uses: Sequence[Mapping[str, str]]) -> bytes:
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
