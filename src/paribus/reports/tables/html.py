"""The table as one self-contained HTML file, and the Jinja templates of all pages, Markdown included.

`templates` holds all markup; the modules of tables and of the site prepare its values. Light and dark mode, wide tables
scroll, plots are inline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from paribus.reports.plots.figure import render_inline
from paribus.reports.plots.panel import TableView, draw_all
from paribus.reports.plots.style import render_mark
from paribus.reports.tables.blocks import (
    CHECK_MARKS,
    CellText,
    break_cell,
    break_head,
    list_notes,
    make_blocks,
    make_evidence,
    say_claim,
)
from paribus.reports.tables.facts import write_line
from paribus.reports.tables.schema import Table
from paribus.verdict.checks import CHECKS
from paribus.verdict.rules import NOT_RUN, WORDS, find_word

Link = Callable[[CellText], str | None]  # the address that a cell leads to


def render_html(table: Table) -> str:
    """The whole page with its drawings."""
    return render("table_file.html", table=table, parts=make_parts(TableView(table)), style=Markup(make_style()))


def make_parts(view: TableView, places: Mapping[str, str] | None = None, link: Link | None = None) -> dict[str, Any]:
    """What every page of a table shows; places: {claim: the address of its page}; link: where its cells lead."""
    table = view.table
    return {
        "facts": write_line(table.facts),
        "claims": [  # (claim, its verdict in words, its page, its contrasts if it has any)
            (claim, say_claim(table, claim), (places or {}).get(claim.text), evidence)
            for claim in table.claims
            for evidence in [make_evidence(table, claim) if claim.contrasts else None]
        ],
        "blocks": make_blocks(table),
        "figures": [(capitalize(drawing.title.format(view=view)), panels) for drawing, panels in draw_all(view)],
        "notes": list_notes(table),
        "link": link,
    }


def make_style() -> str:
    """The style sheet of tables and their drawings, with a class for each verdict."""
    style = (files("paribus.reports.site") / "assets" / "table.css").read_text(encoding="utf-8")
    return style + "".join(f".v-{make_slug(word.name)} {{ color: {word.color}; }}\n" for word in WORDS.all())


def capitalize(text: str) -> str:
    """The text with a capital at its start; its other letters stay as they are."""
    return text[:1].upper() + text[1:]


def render(template: str, **values: object) -> str:
    """A template with its values: in HTML each is escaped, in Markdown none is."""
    return _make_environment().get_template(template).render(values)


def render_page(template: str, path: str, title: str, **values: object) -> bytes:
    """A page of the site; `path`: its place in the site."""
    return render(template, path=path, up="../" * path.count("/"), title=title, **values).encode()


@cache
def _make_environment() -> Environment:
    made = Environment(
        loader=PackageLoader("paribus.reports"),
        autoescape=select_autoescape(["html"], default=False),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters.update(break_cell=break_cell, break_head=break_head, percent=_percent, slug=make_slug)
    made.filters["svg"] = lambda panel: Markup(render_inline(panel))
    made.globals.update(
        check_marks=CHECK_MARKS,
        check_questions=CHECKS,
        mark=_draw_mark,
        paper_mark=lambda left=None: _place(render_mark("diamond", filled=False), left),
    )
    return made


def make_slug(verdict: str) -> str:
    """A verdict as a part of a class name."""
    return verdict.replace(" ", "-")


def _percent(value: float) -> str:
    return f"{value:.2f}%"


def _draw_mark(verdict: str, left: float | None = None) -> Markup:
    """The mark of a verdict, none if nothing was measured; `left`: where it stands on an axis, in percent."""
    word = find_word(verdict)
    return Markup() if verdict == NOT_RUN else _place(render_mark(word.mark, word.decides), left)


def _place(mark: str, left: float | None) -> Markup:
    return Markup(mark if left is None else mark.replace("<svg ", f'<svg style="left: {_percent(left)}" ', 1))
