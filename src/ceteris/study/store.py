"""The store of runs: sealed records in folders, read back whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ceteris.hashing import digest

RECORD = "result.json"
SCHEMA = 1


def seal(record: dict[str, Any]) -> dict[str, Any]:
    """The record with a checksum of its content, so that an edit by hand is seen."""
    content = json.loads(json.dumps({key: value for key, value in record.items() if key != "checksum"}))
    return {**content, "checksum": digest(content, 32)}


def verify(record: dict[str, Any]) -> bool:
    """Whether a record still is what was sealed."""
    return bool(seal(record)["checksum"] == record.get("checksum"))


class Found(NamedTuple):
    """records: the whole ones; left_out: why each of the others is not among them."""

    records: list[dict[str, Any]]
    left_out: list[str]


def records(study: str, scale: str, roots: Sequence[Path]) -> Found:
    """The records of a study at a scale below `<root>/<study>/<arm>/`, the first root that has a run counts."""
    found: dict[tuple[str, int, str], dict[str, Any]] = {}
    left_out = []
    for path in _paths(study, roots):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            key = (record["arm"], int(record["seed"]), record["signature"])
        except (OSError, ValueError, KeyError, TypeError):
            left_out.append(f"{path}: half-written or no record")
            continue
        if record.get("schema") != SCHEMA:
            left_out.append(f"{path}: schema {record.get('schema')}, not {SCHEMA}")
        elif not verify(record):
            left_out.append(f"{path}: edited after the run (checksum)")
        elif record.get("scale") == scale:
            found.setdefault(key, record)
    return Found([found[key] for key in sorted(found)], left_out)


def _paths(study: str, roots: Sequence[Path]) -> Iterator[Path]:
    for root in roots:
        yield from sorted((root / study).glob(f"*/seed*/{RECORD}"))
