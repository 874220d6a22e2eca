"""Pages as Jinja templates: `templates` holds all markup, the modules of tables and of the site prepare its values."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from paribus.reports.plots.figure import render_inline
from paribus.reports.plots.style import render_mark
from paribus.reports.tables.blocks import break_cell, break_head
from paribus.verdict.words import NOT_RUN, find_word


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
        mark=_draw_mark, paper_mark=lambda left=None: _place(render_mark("diamond", filled=False), left)
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
