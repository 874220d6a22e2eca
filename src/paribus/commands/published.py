"""`paribus published [ID]`: the list of published tables, or one of them with its source and flags."""

from __future__ import annotations

from paribus.core.errors import UserError
from paribus.reporting.tables.grid import grid
from paribus.verdict.published import PublishedTable, ids, numbers, row_flags, table

WIDTH = 100


def published(argv: list[str]) -> int:
    """Print the list, or the table named by the one argument. Raises UserError for more than one or an unknown name."""
    if len(argv) > 1:
        raise UserError(f"published takes one ID, got {len(argv)}", "paribus published roberta_table1")
    print(describe(table(argv[0])) if argv else listing())
    return 0


def listing() -> str:
    """All tables, one a line."""
    tables = [table(name) for name in ids()]
    rows = [[entry.id, entry.source, "; ".join(flag.split(":")[0] for flag in entry.flags)] for entry in tables]
    return grid(["id", "source", "flags"], rows, left=3) + f"\n\n{len(tables)} published tables; paribus published ID"


def describe(entry: PublishedTable) -> str:
    """One table for a reader: claim, setting, numbers as printed, flags and where they were read."""
    blocks = [f"{entry.id}: {entry.paper}", f"Source: {entry.source}", _wrapped("Claim: ", entry.claim)]
    blocks += [_wrapped("Setting: ", entry.setting), "", _numbers(entry), ""]
    blocks += [_wrapped(f"[{at}] ", flag) for at, flag in enumerate(row_flags(entry), 1)]
    blocks += [_wrapped("Flag: ", flag) for flag in entry.flags]
    blocks += [_wrapped("Note: ", entry.notes)] if entry.notes else []
    blocks += [_wrapped("Read in: ", place) for place in entry.verified]
    return "\n".join(blocks)


def _numbers(entry: PublishedTable) -> str:
    header, rows, left = numbers(entry)
    return grid(header, rows, left)


def _wrapped(head: str, text: str) -> str:
    from textwrap import fill

    return fill(head + text, WIDTH, subsequent_indent=" " * len(head), break_long_words=False)
