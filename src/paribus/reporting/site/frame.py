"""Shared parts of all pages: head, navigation, relative links, and lists that can be searched and sorted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import NamedTuple

from paribus.reporting.tables.html import make_style, render_document

ASSETS = ("site.css", "site.js", "theme.js")
SECTIONS = {"index.html": "Claims", "scales.html": "Scales", "published/index.html": "Papers"}


class Row(NamedTuple):
    """A row of a list: cells as HTML, and `data-` attributes to search, filter and sort by."""

    cells: Sequence[str]
    data: Mapping[str, str]
    keys: Sequence[str | None] = ()  # what a cell is sorted by, if it is not its text
    place: str = ""  # its id in the page


def read_assets() -> dict[str, bytes]:
    """{path in the site: content}."""
    folder = files("paribus.reporting.site") / "assets"
    found = {f"assets/{name}": (folder / name).read_bytes() for name in ASSETS}
    return {**found, "assets/table.css": make_style().encode()}


def render_frame(path: str, title: str, body: Iterable[str]) -> bytes:
    """A page of the site at `path`, with the navigation; body: pieces of HTML."""
    up = "../" * path.count("/")
    links = "".join(
        f'<a href="{up}{place}"{" aria-current=page" if place == path else ""}>{name}</a>'
        for place, name in SECTIONS.items()
    )
    button = '<button id="theme" type="button" aria-label="light or dark">◐</button>'
    bar = f'<header class="bar"><nav><strong>Paribus</strong>{links}{button}</nav></header>'
    head = f'<script src="{up}assets/theme.js"></script>'
    head += "".join(f'<link rel="stylesheet" href="{up}assets/{name}.css">' for name in ("table", "site"))
    head += f'<script defer src="{up}assets/site.js"></script><link rel="icon" href="data:,">'
    content = "\n".join(part for part in body if part)
    return render_document(title, f"{bar}\n<main>\n{content}\n</main>", head).encode()


def render_list(columns: Mapping[str, str], rows: Sequence[Row], caption: str, sortable: bool = True) -> str:
    """A list as a table whose first cells are headers, cards on a phone; columns: {key to sort by: name}."""
    head = "".join(
        f'<th scope="col" data-sort="{key}"><button type="button">{escape(name)}</button></th>'
        if sortable
        else f'<th scope="col">{escape(name)}</th>'
        for key, name in columns.items()
    )
    body = "\n".join(_render_row(row, list(columns.values())) for row in rows)
    mark, named = " data-list" if sortable else "", f'<caption class="unseen">{escape(caption)}</caption>'
    return f'<table class="full cards"{mark}>{named}<thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>'


def _render_row(row: Row, names: Sequence[str]) -> str:
    data = "".join(f' data-{key}="{escape(value)}"' for key, value in row.data.items())
    own = f' id="{escape(row.place)}"' if row.place else ""
    keys = [*row.keys, *([None] * len(row.cells))]
    cells = "".join(_render_cell(*one) for one in zip(row.cells, names, keys, range(len(names)), strict=False))
    return f"<tr{own}{data}>{cells}</tr>"


def _render_cell(cell: str, name: str, key: str | None, at: int) -> str:
    sort = f' data-key="{escape(key)}"' if key is not None else ""
    if at == 0:
        return f'<th scope="row"{sort}>{cell}</th>'
    return f'<td data-name="{escape(name)}"{sort}>{cell}</td>'


def render_search(filters: Mapping[str, tuple[str, Sequence[str]]]) -> str:
    """A search field and a choice for each filter, {name: (what all is called, values)}."""
    parts = ['<input type="search" data-filter="q" placeholder="Search" aria-label="Search">']
    for name, (everything, values) in filters.items():
        options = "".join(f'<option value="{escape(value)}">{escape(value)}</option>' for value in values)
        choice = f'<option value="">{escape(everything)}</option>{options}'
        parts.append(f'<select data-filter="{name}" aria-label="{name}">{choice}</select>')
    return f'<div class="filters">{"".join(parts)}</div>\n<p class="count" id="count"></p>'


def render_link(place: str, text: str) -> str:
    """A link; both are text."""
    return f'<a href="{escape(place)}">{escape(text)}</a>'


def render_bullets(lines: Iterable[str]) -> str:
    """Lines of text as a list."""
    return "<ul>\n" + "\n".join(f"<li>{escape(line)}</li>" for line in lines) + "\n</ul>"
