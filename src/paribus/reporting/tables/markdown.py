"""The table for a terminal and for a Markdown page."""

from __future__ import annotations

from paribus.reporting.tables.build import Table
from paribus.reporting.tables.grid import grid
from paribus.reporting.tables.words import Block, blocks, contrasts, differing, spent


def markdown(table: Table) -> str:
    """Results, claims with their evidence, notes and sources."""
    title = f": {table['title']}" if table["title"] else ""
    parts = [f"# {table['study']}{title}", ""]
    for block in blocks(table):
        parts += [f"## {block.heading}", "", _block(block), ""]
    parts += ["## Claims", ""] if table["claims"] else []
    for claim in table["claims"]:
        parts += [f"**{claim['text']}**: {claim['said']}", ""]
        parts += [_block(contrasts(table, claim)), ""] if claim["contrasts"] else []
    parts += ["## Notes", "", *(f"- {note}" for note in (*table["notes"], spent(table)))]
    parts += [f"- {line}." for line in differing(table)]
    parts += [f"- Source of the paper's numbers: {source}" for source in table["sources"]]
    return "\n".join(parts) + "\n"


def _block(block: Block) -> str:
    lines = [[f"**{cell.text}**" if cell.best else cell.text for cell in line] for line in block.lines]
    below = [f"\n{text}" for text in block.below]
    return "\n".join([grid(block.header, lines, block.left), *below])
