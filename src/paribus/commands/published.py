"""`paribus published`: the published tables, or one of them with its source and flags."""

from __future__ import annotations

from textwrap import fill

import click

from paribus.core.arguments import Arguments, Positional, Verb
from paribus.verdict.published import PublishedTable, ids, numbers, row_flags, table

ID = Positional("ID", "a published table; without it, all are listed", choices=ids, required=False)
WIDTH = 100


@click.command(
    cls=Verb,
    params=[ID],
    example="paribus published roberta_table1",
)
def published(given: Arguments) -> int:
    """Print the list of published tables, or one of them with its numbers and sources.
    \f
    Raises UserError for an unknown one.
    """
    print(describe(table(given[ID])) if ID in given else listing())
    return 0


def listing() -> str:
    """All tables, one per line."""
    from paribus.reports.tables.markdown import render_grid

    tables = [table(name) for name in ids()]
    rows = [[entry.id, entry.source, "; ".join(flag.split(":")[0] for flag in entry.flags)] for entry in tables]
    listed = render_grid(["id", "source", "flags"], rows, left=3)
    return f"{listed}\n\n{len(tables)} published tables; paribus published ID"


def describe(entry: PublishedTable) -> str:
    """One table for a reader: claim, setting, numbers as printed, flags and the places that they were read from."""
    from paribus.reports.tables.markdown import render_grid

    header, rows, left = numbers(entry)
    blocks = [f"{entry.id}: {entry.paper}", f"Source: {entry.source}", _wrap("Claim: ", entry.claim)]
    blocks += [_wrap("Setting: ", entry.setting), "", render_grid(header, rows, left), ""]
    blocks += [_wrap(f"[{at}] ", flag) for at, flag in enumerate(row_flags(entry), 1)]
    blocks += [_wrap("Flag: ", flag) for flag in entry.flags]
    blocks += [_wrap("Note: ", entry.notes)] if entry.notes else []
    blocks += [_wrap("Read in: ", place) for place in entry.verified]
    return "\n".join(blocks)


def _wrap(head: str, text: str) -> str:
    return fill(head + text, WIDTH, subsequent_indent=" " * len(head), break_long_words=False)
