"""The table as one HTML file that needs nothing else: light and dark, wide tables scroll, the drawings inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Final

from paribus.reporting.plots import arms, curves, effects, pareto
from paribus.reporting.plots.scene import Scene
from paribus.reporting.plots.svg import svg
from paribus.reporting.tables.build import Table
from paribus.reporting.tables.words import Block, Cell, blocks, contrasts, differing, spent

Linked = Callable[[Cell], str | None]  # where a cell leads to

DRAWINGS: Final[dict[str, Callable[[Table], list[Scene]]]] = {
    "plot": arms.panels, "effects": effects.panels, "curves": curves.panels, "pareto": pareto.panels,
}  # fmt: skip
TITLES: Final = {
    "plot": "arms with their intervals",
    "effects": "effect sizes",
    "curves": "learning curves",
    "pareto": "quality against compute",
}


def page(table: Table) -> str:
    """The whole page with its drawings."""
    title = f"{table['study']} at {table['scale']} scale"
    return document(title, "\n".join(_body(table, title)), f"<style>{style()}</style>")


@cache
def style() -> str:
    """The style sheet of tables and their drawings."""
    return (files("paribus.reporting.site") / "assets" / "table.css").read_text(encoding="utf-8")


def document(title: str, body: str, head: str) -> str:
    """A page; body and head are HTML, the title is text."""
    meta = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    return (
        f'<!doctype html>\n<html lang="en">\n<head>{meta}<title>{escape(title)}</title>{head}</head>\n'
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _body(table: Table, title: str) -> Iterator[str]:
    yield f"<main>\n<h1>{escape(title)}</h1>"
    if table["title"]:
        yield f"<p>{escape(table['title'])}</p>"
    yield from claims(table)
    yield from results(table)
    for name, panels in DRAWINGS.items():
        yield figure(TITLES[name], panels(table))
    yield from evidence(table)
    yield notes(table)
    yield "</main>"


def claims(table: Table) -> Iterator[str]:
    """Each claim with its verdict."""
    for claim in table["claims"]:
        said = f'<span class="verdict v-{slug(claim["verdict"])}">{escape(claim["said"])}</span>'
        yield f'<p class="claim">{escape(claim["text"])}<br>{said}</p>'


def slug(verdict: str) -> str:
    return verdict.replace(" ", "-")


def results(table: Table, linked: Linked | None = None) -> Iterator[str]:
    """The table's parts with their headings."""
    for part in blocks(table):
        yield f"<h2>{escape(part.heading)}</h2>"
        yield block(part, linked)


def evidence(table: Table, linked: Linked | None = None) -> Iterator[str]:
    """The contrasts of each claim."""
    if table["claims"]:
        yield "<h2>Evidence of each claim</h2>"
    for claim in table["claims"]:
        yield f"<h3>{escape(claim['text'])}</h3><p>{escape(claim['said'])}</p>"
        if claim["contrasts"]:
            yield block(contrasts(table, claim), linked)


def notes(table: Table) -> str:
    """What a reader must know, as a list."""
    said = [*table["notes"], spent(table), *(f"{line}." for line in differing(table))]
    said += [f"Source of the paper's numbers: {source}" for source in table["sources"]]
    return "<h2>Notes</h2>\n<ul>\n" + "\n".join(f"<li>{escape(note)}</li>" for note in said) + "\n</ul>"


def figure(title: str, scenes: Sequence[Scene]) -> str:
    """Panels that flow beside or below each other; nothing where there is none."""
    if not scenes:
        return ""
    panels = "".join(svg(scene, standalone=False) for scene in scenes)
    return f"<h2>{escape(title.capitalize())}</h2>\n<figure>{panels}</figure>"


def block(part: Block, linked: Linked | None = None) -> str:
    """A part as a table that scrolls where it is too wide."""
    head = "".join(f'<th scope="col"{_side(at, part)}>{escape(name)}</th>' for at, name in enumerate(part.header))
    rows = "\n".join(
        f"<tr>{''.join(_cell(cell, _side(at, part), linked) for at, cell in enumerate(line))}</tr>"
        for line in part.lines
    )
    below = "".join(f'<p class="below">{escape(text)}</p>' for text in part.below)
    table = f'<table class="numbers"><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>'
    return f'<div class="wide">{table}</div>{below}'


def _side(at: int, part: Block) -> str:
    if at < part.left:
        return ' class="words"'
    return ' class="words last"' if at >= len(part.header) - part.last else ""


def _cell(cell: Cell, side: str, linked: Linked | None) -> str:
    text = f"<b>{escape(cell.text)}</b>" if cell.best else escape(cell.text)
    place = linked(cell) if linked else None
    return f"<td{side}>" + (f'<a href="{escape(place)}">{text}</a>' if place else text) + "</td>"
