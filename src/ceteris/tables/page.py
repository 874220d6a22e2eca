"""The table as one HTML file that needs nothing else: light and dark, wide tables scroll, the plot inside."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ceteris.tables.build import Table
from ceteris.tables.words import Block, Cell, blocks, contrasts, differing, spent

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --line: #d0d7de; --soft: #f3f5f7; --mark: #0b5cad; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ed; --paper: #14171b; --line: #3a4149; --soft: #1f242a; --mark: #7db7ff; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 75rem; padding: 0 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }
th, td { padding: .35rem .7rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 2px solid var(--ink); background: var(--soft); }
.below { font-size: .85rem; opacity: .85; margin: .3rem 0; }
.claim { border-left: 4px solid var(--mark); padding-left: 1rem; margin: 1.2rem 0; }
.verdict { font-weight: 600; color: var(--mark); }
figure { margin: 1rem 0; background: #fff; padding: .5rem; border-radius: 6px; }
figure svg { max-width: 100%; height: auto; }
"""


def page(table: Table, plot_svg: str) -> str:
    """The whole page; `plot_svg` is put into it."""
    title = escape(f"{table['study']} at {table['scale']} scale")
    return document(title, "\n".join(_body(table, title, plot_svg)))


def document(title: str, body: str, more_style: str = "") -> str:
    """A page of the house's style; title and body are HTML."""
    meta = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    head = f"<head>{meta}<title>{title}</title><style>{_STYLE}{more_style}</style></head>"
    return f'<!doctype html>\n<html lang="en">\n{head}\n<body>\n{body}\n</body>\n</html>\n'


def _body(table: Table, title: str, plot_svg: str) -> Iterator[str]:
    yield f"<h1>{title}</h1>"
    if table["title"]:
        yield f"<p>{escape(table['title'])}</p>"
    for claim in table["claims"]:
        yield f'<p class="claim">{escape(claim["text"])}<br><span class="verdict">{escape(claim["said"])}</span></p>'
    for block in blocks(table):
        yield f"<h2>{escape(block.heading)}</h2>"
        yield _block(block)
    yield f'<figure role="img" aria-label="{title}: arms with intervals">{_inline(plot_svg)}</figure>'
    yield "<h2>Evidence of each claim</h2>" if table["claims"] else ""
    for claim in table["claims"]:
        yield f'<h3>{escape(claim["text"])}</h3><p class="verdict">{escape(claim["said"])}</p>'
        yield _block(contrasts(table, claim)) if claim["contrasts"] else ""
    yield "<h2>Notes</h2><ul>"
    notes = [*table["notes"], spent(table), *(f"{line}." for line in differing(table))]
    for note in (*notes, *(f"Source of the paper's numbers: {source}" for source in table["sources"])):
        yield f"<li>{escape(note)}</li>"
    yield "</ul>"


def _block(block: Block) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in block.header)
    rows = "\n".join(f"<tr>{''.join(_cell(cell) for cell in line)}</tr>" for line in block.lines)
    below = "".join(f'<p class="below">{escape(text)}</p>' for text in block.below)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>"
    return f'<div class="wide">{table}</div>{below}'


def _cell(cell: Cell) -> str:
    text = escape(cell.text)
    return f"<td><b>{text}</b></td>" if cell.best else f"<td>{text}</td>"


def _inline(svg: str) -> str:
    """The drawing without its XML head, which has no place inside HTML."""
    return svg[svg.index("<svg") :]
