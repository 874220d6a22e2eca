"""Plain tables that a reader can read in a terminal and that Markdown renders."""

from __future__ import annotations

from collections.abc import Sequence


def grid(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """An aligned Markdown table; the first `left` columns are flush left, the others (numbers) flush right."""
    cells = [[cell.replace("|", "\\|") for cell in line] for line in (header, *rows)]
    widths = [max(3, *(len(line[at]) for line in cells)) for at in range(len(header))]
    rule = [":" + "-" * (width - 1) if at < left else "-" * (width - 1) + ":" for at, width in enumerate(widths)]
    lines = [cells[0], rule, *cells[1:]]
    return "\n".join("| " + " | ".join(_padded(line, widths, left)) + " |" for line in lines)


def _padded(line: Sequence[str], widths: Sequence[int], left: int) -> list[str]:
    pairs = zip(line, widths, strict=True)
    return [cell.ljust(width) if at < left else cell.rjust(width) for at, (cell, width) in enumerate(pairs)]
