"""Whether a kept table is what its records give, value by value."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from paribus.core.errors import UserError
from paribus.reporting.tables.assemble import assemble
from paribus.reporting.tables.build import Table
from paribus.reporting.tables.design import Design

TABLE = "table.json"
IN_ORDER = "✓ the records are whole, on one text, within the budget, and differ as declared"


def differing(kept: Table, rebuilt: Table) -> list[str]:
    """Where two tables differ, such as `arms[dynamic].n: 5 in the table, 4 from the records`."""
    return list(_walk("", kept, json.loads(json.dumps(rebuilt))))


def numbers(value: Any) -> int:
    """How many numbers a table holds."""
    if isinstance(value, dict):
        return sum(map(numbers, value.values()))
    if isinstance(value, list):
        return sum(map(numbers, value))
    return int(isinstance(value, int | float) and not isinstance(value, bool))


def _walk(path: str, kept: Any, rebuilt: Any) -> Iterator[str]:
    if isinstance(kept, dict) and isinstance(rebuilt, dict):
        for key in kept.keys() | rebuilt.keys() if len(kept) != len(rebuilt) else kept:
            yield from _walk(f"{path}[{key}]" if path else key, kept.get(key), rebuilt.get(key))
    elif isinstance(kept, list) and isinstance(rebuilt, list) and len(kept) == len(rebuilt):
        for at, (own, other) in enumerate(zip(kept, rebuilt, strict=True)):
            yield from _walk(f"{path}[{_name(own, at)}]", own, other)
    elif kept != rebuilt:
        yield f"{path}: {_said(kept)} in the table, {_said(rebuilt)} from the records"


def _name(item: Any, at: int) -> Any:
    return item["name"] if isinstance(item, dict) and "name" in item else at


def _said(value: Any) -> str:
    if isinstance(value, dict | list):
        return f"{len(value)} entries"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"


def read(place: Path) -> dict[str, Any]:
    """A kept table. Raises UserError where it cannot be read."""
    try:
        table: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{place} is no table", "make it with `paribus table`") from error
    return table


def unfollowed(kept: dict[str, Any], design: Design, roots: Sequence[Path]) -> tuple[list[str], int]:
    """(what of a kept table the records below the roots do not give, how many numbers it holds)."""
    return differing(kept, assemble(design, roots)), numbers(kept)
