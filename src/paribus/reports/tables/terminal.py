"""The table for a terminal: fitted to its width, or short on one screen with what to type next."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from paribus.reports.tables.blocks import (
    NONE,
    Block,
    break_cell,
    break_head,
    format_interval,
    format_name,
    format_number,
    list_notes,
    make_blocks,
    make_evidence,
    say_claim,
)
from paribus.reports.tables.facts import write_line
from paribus.reports.tables.schema import AnchorRow, ArmRow, Cell, ClaimRow, Level, Table
from paribus.verdict.checks import SOLID
from paribus.verdict.claims import OWNERS
from paribus.verdict.metrics import MEAN, is_averaged
from paribus.verdict.rules import CONTRADICTED, EQUIVALENT, REPRODUCED

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table as Grid

GAP = 2  # between columns
WORDS = 24  # letters of a column of words before it wraps
MARKS = {REPRODUCED: ("✓", "green"), CONTRADICTED: ("✗", "red"), EQUIVALENT: ("=", "cyan")}
OPEN = ("?", "yellow")
ANCHORS = ("from scratch", "bag of words")  # of those that a table may have
NEXT = "init --text my/books --task my/trec --compare masking.rate=0.15,0.4"


def print_table(table: Table, width: int | None = None, color: bool | None = None) -> None:
    """Print results, claims and notes on stdout. width: of the terminal, if it is not the real one."""
    from rich.console import Console
    from rich.text import Text as Line

    console = Console(width=width, no_color=None if color is None else not color, highlight=False)
    parts: list[RenderableType] = [Line(f"{table.label}{f': {table.title}' if table.title else ''}", "bold")]
    parts.append(write_line(table.facts))
    for block in make_blocks(table):
        parts += [Line(f"\n{block.heading}", "bold"), *_list_grids(block, console.width)]
    for claim in table.claims:
        parts += [Line(f"\nClaim: {claim.sentence}", "bold"), say_claim(table, claim)]
        parts += _list_grids(make_evidence(table, claim), console.width) if claim.contrasts else []
    for part in (*parts, Line("\nNotes", "bold"), *(f"- {note}" for note in list_notes(table))):
        console.print(part, markup=False)


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


def print_brief(table: Table, out: Path, step: str | None) -> None:
    """Print the table on stdout, short. `out`: where the long one is; `step`: the command that decides what is open."""
    from rich.console import Console

    console = Console(highlight=False)
    for part in _list_brief_parts(table, out, step, min(console.width, 100)):
        console.print(part, markup=False, soft_wrap=True)


def _list_brief_parts(table: Table, out: Path, step: str | None, width: int) -> Iterator[RenderableType]:
    from rich.text import Text

    title, _, citation = table.title.partition("   ")
    yield Text(f"{title} {citation}".strip(), "bold")
    yield fill(f"{table.label}: {write_line(table.facts)}".rstrip(": "), width)
    yield ""
    yield _make_brief_grid(table, width)
    yield f"* baseline. Mean ± half of the 95% interval{', beside the numbers of the paper' if table.paper else ''}."
    for claim in table.claims:
        mark, color = MARKS.get(claim.verdict, OPEN)
        color = color if claim.strength in (None, SOLID) else OPEN[1]
        whose = f" ({OWNERS[claim.whose]})" if claim.whose else ""
        yield Text(
            fill(
                f"{mark} {claim.says or claim.text}{whose}: {'; '.join([claim.said, *claim.words])}",
                width,
                subsequent_indent="  ",
            ),
            color,
        )
        for line in _list_evidence(table, claim):
            yield fill(f"  {line}", width, subsequent_indent="    ")
    yield ""
    yield fill(f"Evidence, notes and audit: {out / 'table.md'}; pictures: {out / 'plot.png'}, effects.png", width)
    program = "paribus" if shutil.which("paribus") else sys.argv[0]
    if step is None:
        yield f"Next, the same for your own text and task:\n  {program} {NEXT}"
    elif not step.startswith("paribus "):
        yield fill(f"Next: {step}", width)
    else:
        command, _, why = step.partition("   # ")
        yield f"{fill(f'Next: {why}', width)}\n  {command.replace('paribus', program, 1)}"


def _make_brief_grid(table: Table, width: int) -> Grid:
    """Arms and anchors in the columns that claims are about, then as many of the paper's numbers as fit."""
    from rich import box
    from rich.table import Table as Grid

    rows: list[ArmRow | AnchorRow] = [*table.arms, *(row for row in table.anchors if row.name in ANCHORS)]
    names = [format_name(table, row).replace(" (baseline)", " *") for row in rows]
    shown = [("arm", names), ("n", [NONE if row.n is None else str(row.n) for row in rows])]
    # the measured columns that claims are about, or all; the only task itself instead of the mean over tasks
    measured = [column for column in table.columns if any(column in row.metrics for row in table.arms)]
    asked = {row.column for claim in table.claims for row in claim.contrasts} & set(measured)
    tasks = [column for column in measured if is_averaged(column)]
    if MEAN in asked and len(tasks) == 1:
        asked = {*asked - {MEAN}, *tasks}
    for column in [column for column in measured if column in asked or not asked]:
        arrow = "↑" if table.about[column].higher_is_better else "↓"
        cells = [_format_cell(table, column, row.metrics.get(column)) for row in rows]
        shown.append((f"{column.removesuffix('/accuracy')} {arrow}", cells))
    for name in dict.fromkeys([*table.beside.values(), *table.absent.values()]):
        printed = [row.published.get(name) if isinstance(row, ArmRow) else None for row in rows]
        shown.append((f"paper:\n{name}", ["" if one is None else one.text or f"{one.value:g}" for one in printed]))
    grid = Grid(box=box.SIMPLE_HEAD, padding=(0, GAP, 0, 0), pad_edge=False, show_edge=False)
    kept: list[list[str]] = []
    used = 0
    for head, cells in shown:
        used += max(map(len, [*head.split("\n"), *cells])) + GAP
        if used <= width or not head.startswith("paper:"):
            grid.add_column(head, justify="right" if kept else "left", no_wrap=True)
            kept.append(cells)
    for line in zip(*kept, strict=True):
        grid.add_row(*line)
    return grid


def _format_cell(table: Table, column: str, cell: Cell | Level | None) -> str:
    if cell is None:
        return ""
    mean = format_number(table, column, cell.mean)
    if not isinstance(cell, Cell) or cell.ci_low is None or cell.ci_high is None:
        return mean
    return f"{mean} ±{format_number(table, column, (cell.ci_high - cell.ci_low) / 2)}"


def _list_evidence(table: Table, claim: ClaimRow) -> Iterator[str]:
    """The differences behind a claim, one line for each pair of arms."""
    pairs = dict.fromkeys((row.arm, row.versus) for row in claim.contrasts if row.difference is not None)
    for arm, versus in pairs:
        parts = [
            f"{row.column.removesuffix('/accuracy')} {format_number(table, row.column, row.difference, sign=True)}"
            f"{format_interval(table, row.column, row.ci_low, row.ci_high)}"
            + (f" (margin {format_number(table, row.column, row.margin)})" if row.margin else "")
            for row in claim.contrasts
            if (row.arm, row.versus) == (arm, versus) and row.difference is not None
        ]
        yield f"{arm} - {versus}: {', '.join(parts)}"
