"""The table as one self-contained HTML file: light and dark mode, wide tables scroll, plots are inline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import NamedTuple

from markupsafe import Markup

from paribus.reports.plots.drawing import View, draw_all
from paribus.reports.plots.panel import Panel
from paribus.reports.rendering import make_slug, render
from paribus.reports.tables.blocks import Block, Text, list_notes, make_blocks, make_evidence, say_claim
from paribus.reports.tables.facts import write_line
from paribus.reports.tables.schema import ClaimRow, Table
from paribus.verdict.words import WORDS

Link = Callable[[Text], str | None]  # the address that a cell leads to


class ClaimPart(NamedTuple):
    """A claim with its verdict in words, the address of its page, and its contrasts if it has any."""

    claim: ClaimRow
    said: str
    place: str | None
    evidence: Block | None


@dataclass(frozen=True)
class TableParts:
    """What every page of a table shows; `figures`: headings with their panels; `link`: where its cells lead."""

    facts: str
    claims: Sequence[ClaimPart]
    blocks: Sequence[Block]
    figures: Sequence[tuple[str, Sequence[Panel]]]
    notes: Sequence[str]
    link: Link | None


def render_html(table: Table) -> str:
    """The whole page with its drawings."""
    return render("table_file.html", table=table, parts=make_parts(View(table)), style=Markup(make_style()))


def make_parts(view: View, places: Mapping[str, str] | None = None, link: Link | None = None) -> TableParts:
    """The parts of a page about a table; places: {claim: the address of its page}."""
    table = view.table
    claims = [
        ClaimPart(
            claim,
            say_claim(table, claim),
            (places or {}).get(claim.text),
            make_evidence(table, claim) if claim.contrasts else None,
        )
        for claim in table.claims
    ]
    figures = [(capitalize(drawing.title.format(view=view)), panels) for drawing, panels in draw_all(view)]
    return TableParts(write_line(table.facts), claims, make_blocks(table), figures, list_notes(table), link)


def make_style() -> str:
    """The style sheet of tables and their drawings, with a class for each verdict."""
    style = (files("paribus.reports.site") / "assets" / "table.css").read_text(encoding="utf-8")
    return style + "".join(f".v-{make_slug(word.name)} {{ color: {word.color}; }}\n" for word in WORDS.all())


def capitalize(text: str) -> str:
    """The text with a capital at its start; its other letters stay as they are."""
    return text[:1].upper() + text[1:]
