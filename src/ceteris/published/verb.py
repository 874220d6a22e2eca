"""`ceteris published [ID]`: the list of published tables, or one of them with its source and flags."""

from __future__ import annotations

from ceteris.errors import UserError
from ceteris.published.atlas import PublishedRow, PublishedTable, ids, table
from ceteris.tables.grid import grid

WIDTH = 100


def published(argv: list[str]) -> int:
    """Print the list, or the table named by the one argument. Raises UserError for more than one or an unknown name."""
    if len(argv) > 1:
        raise UserError(f"published takes one ID, got {len(argv)}", "ceteris published roberta_table1")
    print(describe(table(argv[0])) if argv else listing())
    return 0


def listing() -> str:
    """All tables, one a line."""
    tables = [table(name) for name in ids()]
    rows = [[entry.id, entry.source, "; ".join(flag.split(":")[0] for flag in entry.flags)] for entry in tables]
    return grid(["id", "source", "flags"], rows, left=3) + f"\n\n{len(tables)} published tables; ceteris published ID"


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


def numbers(entry: PublishedTable) -> tuple[list[str], list[list[str]], int]:
    """(header, rows as printed with marks of their flags, how many columns hold words)."""
    settings = list(dict.fromkeys(key for row in entry.rows for key in row.config))
    header = ["arm", *settings, *(f"{m.name} {'↑' if m.higher_is_better else '↓'}" for m in entry.metrics)]
    marks = {flag: at for at, flag in enumerate(row_flags(entry), 1)}
    return header, [_line(entry, row, settings, marks) for row in entry.rows], 1 + len(settings)


def _line(entry: PublishedTable, row: PublishedRow, settings: list[str], marks: dict[str, int]) -> list[str]:
    name = row.arm + (" (baseline)" if row.baseline else "") + "".join(f" [{marks[flag]}]" for flag in row.flags)
    values = [row.values[metric.name] for metric in entry.metrics]
    config = [str(row.config.get(key, "")) for key in settings]
    return [name, *config, *("-" if value is None else f"{value}" for value in values)]


def row_flags(entry: PublishedTable) -> list[str]:
    """The flags of single rows, each once, in the order of their marks."""
    return list(dict.fromkeys(flag for row in entry.rows for flag in row.flags))


def _wrapped(head: str, text: str) -> str:
    from textwrap import fill

    return fill(head + text, WIDTH, subsequent_indent=" " * len(head), break_long_words=False)
