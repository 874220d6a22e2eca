"""The table for a terminal, fitted to its width: wide parts are split into several with the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from paribus.reports.tables.blocks import (
    Block,
    break_cell,
    break_head,
    list_notes,
    make_blocks,
    make_evidence,
    say_claim,
)
from paribus.reports.tables.facts import write_line
from paribus.reports.tables.schema import Table

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table as Grid

GAP = 2  # between columns
WORDS = 24  # letters of a column of words before it wraps


def print_table(table: Table, width: int | None = None, color: bool | None = None) -> None:
    """Print results, claims and notes on stdout. width: of the terminal, if it is not the real one."""
    from rich.console import Console

    console = Console(width=width, no_color=None if color is None else not color, highlight=False)
    for part in _list_parts(table, console.width):
        console.print(part, markup=False)


def _list_parts(table: Table, width: int) -> Iterator[RenderableType]:
    from rich.text import Text as Line

    yield Line(f"{table.label}{f': {table.title}' if table.title else ''}", "bold")
    yield write_line(table.facts)
    for block in make_blocks(table):
        yield Line(f"\n{block.heading}", "bold")
        yield from _list_grids(block, width)
    for claim in table.claims:
        yield Line(f"\nClaim: {claim.sentence}", "bold")
        yield say_claim(table, claim)
        if claim.contrasts:
            yield from _list_grids(make_evidence(table, claim), width)
    yield Line("\nNotes", "bold")
    yield from (f"- {note}" for note in list_notes(table))


def _list_grids(block: Block, width: int) -> Iterator[RenderableType]:
    """The block in parts that fit, each with its first columns, then the sentences below it."""
    stub = list(range(block.left))
    free = width - sum(_measure(block, at) + GAP for at in stub)
    parts: list[list[int]] = [[]]
    used = 0
    for at in range(block.left, len(block.header)):
        wide = _measure(block, at) + GAP
        if parts[-1] and used + wide > free:
            parts.append([])
            used = 0
        parts[-1].append(at)
        used += wide
    for part in parts:
        yield _make_grid(block, [*stub, *part])
    yield from block.below


def _is_words(block: Block, at: int) -> bool:
    return at < block.left or at >= len(block.header) - block.last


def _measure(block: Block, at: int) -> int:
    lines = [line for row in block.lines for line in break_cell(row[at].text).split("\n")]
    longest = max(map(len, [*lines, *break_head(block.header[at]).split("\n")]))
    return min(longest, WORDS) if _is_words(block, at) else longest


def _make_grid(block: Block, columns: Sequence[int]) -> Grid:
    from rich import box
    from rich.table import Table as Grid
    from rich.text import Text as Line

    grid = Grid(box=box.SIMPLE_HEAD, padding=(0, GAP, 0, 0), pad_edge=False, show_edge=False)
    for at in columns:
        justify = "left" if _is_words(block, at) else "right"
        grid.add_column(break_head(block.header[at]), justify=justify, overflow="fold", max_width=_measure(block, at))  # type: ignore[arg-type]
    for row in block.lines:
        grid.add_row(*(Line(break_cell(row[at].text), "bold" if row[at].best else "") for at in columns))
    return grid
