"""The table as one self-contained HTML file: light and dark mode, wide tables scroll, plots are inline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files

from paribus.reporting.plots.drawing import View, draw_all
from paribus.reporting.plots.figure import render_inline
from paribus.reporting.plots.marks import render_mark
from paribus.reporting.plots.panel import Panel
from paribus.reporting.tables.blocks import (
    Block,
    Text,
    break_cell,
    break_head,
    list_notes,
    make_blocks,
    make_evidence,
    say_claim,
)
from paribus.reporting.tables.facts import write_line
from paribus.reporting.tables.schema import Table
from paribus.verdict.words import NOT_RUN, WORDS, find_word

Link = Callable[[Text], str | None]  # the address that a cell leads to


def render_page(table: Table) -> str:
    """The whole page with its drawings."""
    return render_document(table.label, "\n".join(_render_body(table)), f"<style>{make_style()}</style>")


def make_style() -> str:
    """The style sheet of tables and their drawings, with a class for each verdict."""
    verdicts = "".join(f".v-{make_slug(word.name)} {{ color: {word.color}; }}\n" for word in WORDS.all())
    return _read_style() + verdicts


@cache
def _read_style() -> str:
    return (files("paribus.reporting.site") / "assets" / "table.css").read_text(encoding="utf-8")


def render_document(title: str, body: str, head: str) -> str:
    """A page; body and head are HTML, the title is text."""
    meta = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    return (
        f'<!doctype html>\n<html lang="en">\n<head>{meta}<title>{escape(title)}</title>{head}</head>\n'
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _render_body(table: Table) -> Iterator[str]:
    yield f"<main>\n<h1>{escape(table.label)}</h1>"
    if table.title:
        yield f"<p>{escape(table.title)}</p>"
    yield from render_facts(table)
    yield from render_claims(table)
    yield from render_results(table)
    yield from render_figures(View(table))
    yield from render_evidence(table)
    yield render_notes(table)
    yield "</main>"


def render_facts(table: Table) -> Iterator[str]:
    """The setting of the table, as one line."""
    if line := write_line(table.facts):
        yield f'<p class="small">{escape(line)}</p>'


def render_claims(table: Table, places: Mapping[str, str] | None = None) -> Iterator[str]:
    """Each claim with its verdict; places: {claim: the address of its page}."""
    for claim in table.claims:
        place = (places or {}).get(claim.text)
        named = f'<a href="{escape(place)}">{escape(claim.sentence)}</a>' if place else escape(claim.sentence)
        below = f'<br><span class="small">{escape(claim.text)}</span>' if claim.says else ""
        yield f'<p class="claim">{named}{below}<br>{render_verdict(claim.verdict, escape(say_claim(table, claim)))}</p>'


def render_verdict(verdict: str, inner: str) -> str:
    """HTML in the color of a verdict, behind its mark if anything was measured."""
    word = find_word(verdict)
    mark = "" if verdict == NOT_RUN else render_mark(word.mark, word.decides)
    return f'<span class="verdict v-{make_slug(verdict)}">{mark}{inner}</span>'


def make_slug(verdict: str) -> str:
    """A verdict as a part of a class name."""
    return verdict.replace(" ", "-")


def render_results(table: Table, link: Link | None = None) -> Iterator[str]:
    """The table's parts with their headings."""
    for block in make_blocks(table):
        yield f"<h2>{escape(block.heading)}</h2>"
        yield render_block(block, link)


def render_evidence(table: Table, link: Link | None = None) -> Iterator[str]:
    """The contrasts of each claim."""
    if table.claims:
        yield "<h2>Evidence for each claim</h2>"
    for claim in table.claims:
        yield f"<h3>{escape(claim.sentence)}</h3><p>{escape(say_claim(table, claim))}</p>"
        if claim.contrasts:
            yield render_block(make_evidence(table, claim), link)


def render_notes(table: Table) -> str:
    """The table's notes as a list."""
    return "<h2>Notes</h2>\n<ul>\n" + "\n".join(f"<li>{escape(note)}</li>" for note in list_notes(table)) + "\n</ul>"


def render_figures(view: View) -> Iterator[str]:
    """Every registered drawing that has something to draw."""
    for drawing, panels in draw_all(view):
        yield render_figure(drawing.title.format(view=view), panels)


def render_figure(title: str, panels: Sequence[Panel]) -> str:
    """Panels that flow beside or below each other; nothing if there is none."""
    if not panels:
        return ""
    drawn = "".join(map(render_inline, panels))
    return f"<h2>{escape(capitalize(title))}</h2>\n<figure>{drawn}</figure>"


def capitalize(text: str) -> str:
    """The text with a capital at its start; its other letters stay as they are."""
    return text[:1].upper() + text[1:]


def render_block(block: Block, link: Link | None = None) -> str:
    """A part as a table that scrolls if it is too wide; the first cell of a line is its header."""
    head = "".join(
        f'<th scope="col"{_make_class(at, block)}>{_escape_lines(break_head(name))}</th>'
        for at, name in enumerate(block.header)
    )
    rows = "\n".join(
        f"<tr>{''.join(_render_cell(at, cell, block, link) for at, cell in enumerate(line))}</tr>"
        for line in block.lines
    )
    below = "".join(f'<p class="below">{escape(text)}</p>' for text in block.below)
    caption = f'<caption class="unseen">{escape(block.heading)}</caption>'
    table = f'<table class="numbers">{caption}<thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>'
    return render_scroll(table, block.heading) + below


def render_scroll(table: str, label: str) -> str:
    """A table that scrolls sideways and shows it; `label` is text."""
    return f'<div class="wide" role="region" tabindex="0" aria-label="{escape(label)}">{table}</div>'


def _escape_lines(text: str) -> str:
    return escape(text).replace("\n", "<br>")


def _make_class(at: int, block: Block) -> str:
    if at < block.left:
        return ' class="words"'
    return ' class="words last"' if at >= len(block.header) - block.last else ""


def _render_cell(at: int, cell: Text, block: Block, link: Link | None) -> str:
    text = escape(cell.text) if at < block.left else _escape_lines(break_cell(cell.text))
    text = f"<b>{text}</b>" if cell.best else text
    address = link(cell) if link else None
    inner = f'<a href="{escape(address)}">{text}</a>' if address else text
    name, scope = ("th", ' scope="row"') if at == 0 else ("td", "")
    return f"<{name}{scope}{_make_class(at, block)}>{inner}</{name}>"
