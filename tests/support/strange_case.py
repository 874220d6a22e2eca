"""A file as strangers have it and what its author meant by it, and what all kinds of such files share."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

SPACES = ("\u00a0", "\u2009", "\u202f", "\u3000")
LINE_SEPARATORS = ("\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1e")
INVISIBLE = ("\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad")
WORDS = (
    "model", "rain", "seven", "bright", "caf\u00e9", "\u00fcber", "na\u00efve", "data", "\u6771\u4eac", "good", "slow",
    "\u05e9\u05dc\u05d5\u05dd", "\u0645\u0631\u062d\u0628\u0627", "tea", "\U0001f600", "\U0001f468\u200d\U0001f469",
    "Zo\u00eb", "river",
)  # fmt: skip


@dataclass(frozen=True)
class StrangeFile:
    """One case.

    kind: results, labels, tags, questions or corpus. files: {path below a folder: content}. config: a task's YAML
    mapping without its `path`. arguments: what a user would type besides the path. written: what the author meant.
    ambiguous: a careful person cannot know the meaning from the files, the config and the arguments, so that a refusal
    is right and silence is not. why: the names of the variations. classes: the names of a task's classes, which YAML
    may read as numbers. also: other readings that are as right.
    """

    kind: str
    files: dict[str, bytes]
    config: dict[str, Any] | None
    arguments: tuple[str, ...]
    written: Any
    ambiguous: bool
    why: str
    classes: tuple[str, ...] = ()
    also: tuple[Any, ...] = ()


Variation = Callable[[random.Random, Any], None]


def vary(draw: random.Random, draft: Any, axes: Sequence[Sequence[Variation]]) -> str:
    """Change a draft in 1 to 4 of the axes, by one variation each and in the order of the axes; returns their names."""
    chosen = sorted(draw.sample(range(len(axes)), draw.randint(1, 4)))
    variations = [draw.choice(axes[number]) for number in chosen]
    for variation in variations:
        variation(draw, draft)
    return ", ".join(variation.__name__.replace("_", " ") for variation in variations)


def phrase(draw: random.Random, least: int = 3, most: int = 9) -> str:
    """A few words of several scripts."""
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(least, most)))


def delimited(rows: Iterable[Sequence[str]], delimiter: str, newline: str = "\n", quote_all: bool = False) -> str:
    """Rows as spreadsheets write them: a cell that holds the delimiter, a quote or a line end is quoted.

    The csv module leaves `\\r` bare if lines end in `\\n`.
    """
    special = (delimiter, '"', "\n", "\r")

    def quoted(cell: str) -> str:
        bare = not quote_all and not any(mark in cell for mark in special)
        return cell if bare else '"' + cell.replace('"', '""') + '"'

    return "".join(delimiter.join(map(quoted, row)) + newline for row in rows)


def parquet(columns: dict[str, Any], row_group: int | None = None) -> bytes:
    """A parquet file of these lists or arrow arrays."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, row_group_size=row_group)
    return buffer.getvalue()
