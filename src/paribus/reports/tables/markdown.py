"""The table as a Markdown page."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.reports.tables.blocks import Block, list_notes, make_blocks, make_evidence, say_claim
from paribus.reports.tables.facts import write_line
from paribus.reports.tables.schema import Table


def render_markdown(table: Table) -> str:
    """Results, claims with their evidence, notes and sources."""
    parts = [f"# {table.study}{f': {table.title}' if table.title else ''}", ""]
    parts += [line, ""] if (line := write_line(table.facts)) else []
    for block in make_blocks(table):
        parts += [f"## {block.heading}", "", _render_block(block), ""]
    parts += ["## Claims", ""] if table.claims else []
    for claim in table.claims:
        parts += [f"**{claim.sentence}**: {say_claim(table, claim)}", ""]
        parts += [f"`{claim.text}`", ""] if claim.says else []
        parts += [_render_block(make_evidence(table, claim)), ""] if claim.contrasts else []
    parts += ["## Notes", "", *(f"- {note}" for note in list_notes(table))]
    return "\n".join(parts) + "\n"


def _render_block(block: Block) -> str:
    lines = [[f"**{cell.text}**" if cell.best else cell.text for cell in line] for line in block.lines]
    below = [f"\n{text}" for text in block.below]
    return "\n".join([render_grid(block.header, lines, block.left), *below])


def render_grid(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """An aligned Markdown table; the first `left` columns are flush left, the others (numbers) flush right."""
    cells = [[cell.replace("|", "\\|") for cell in line] for line in (header, *rows)]
    widths = [max(3, *(len(line[at]) for line in cells)) for at in range(len(header))]
    rule = [":" + "-" * (width - 1) if at < left else "-" * (width - 1) + ":" for at, width in enumerate(widths)]
    lines = []
    for line in (cells[0], rule, *cells[1:]):
        pairs = enumerate(zip(line, widths, strict=True))
        padded = [cell.ljust(width) if at < left else cell.rjust(width) for at, (cell, width) in pairs]
        lines.append(f"| {' | '.join(padded)} |")
    return "\n".join(lines)
