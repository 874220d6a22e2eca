"""Text files with one row per run: CSV with any delimiter, and JSONL."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

from paribus.core.errors import UserError
from paribus.integrations.source import ForeignRow, ForeignSource, flatten

_DELIMITERS = ",;\t|"
_COMMA = re.compile(r"[+-]?\d+,\d+")  # a number with a decimal comma
_NAMES = ("name", "run", "run_name")


def read(name: str) -> ForeignSource:
    """The rows of a file. Raises UserError for one that is not text, or has no header or surplus cells."""
    path = Path(name).expanduser()
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{name} cannot be read ({error})", "give a CSV or JSONL file in UTF-8") from error
    rows = _read_jsonl(name, text) if path.suffix in (".jsonl", ".ndjson") else _read_csv(name, text)
    return ForeignSource(path.stem, list(rows))


def _read_jsonl(name: str, text: str) -> Iterator[ForeignRow]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            content = json.loads(line)
        except ValueError as error:
            cause = f"line {number} of {name} is not JSON ({error})"
            raise UserError(cause, "write one object per run, each on a line of its own") from error
        if not isinstance(content, dict):
            raise UserError(f"line {number} of {name} is not a JSON object", "write one object per run")
        values = dict(flatten(content))
        yield ForeignRow(f"line {number}", values, _find_name(values))


def _read_csv(name: str, text: str) -> Iterator[ForeignRow]:
    delimiter = max(_DELIMITERS, key=text.partition("\n")[0].count)  # the most frequent one in the header
    lines = csv.reader(text.splitlines(), delimiter=delimiter)
    header = [cell.strip() for cell in next(lines, [])]
    if len(header) < 2 or len(set(header)) < len(header):
        raise UserError(f"{name} has no header of distinct names", "name each column once in the first line")
    for cells in lines:
        place = f"line {lines.line_num}"
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) > len(header):
            raise UserError(f"{place} of {name} has {len(cells)} cells for {len(header)} columns", "quote its commas")
        padded = [*cells, *[""] * (len(header) - len(cells))]
        values = dict(zip(header, map(str.strip, padded), strict=True))
        if delimiter != ",":
            values = {key: text.replace(",", ".") if _COMMA.fullmatch(text) else text for key, text in values.items()}
        yield ForeignRow(place, values, _find_name(values))


def _find_name(values: dict[str, str]) -> str:
    return next((str(value) for key, value in values.items() if key.lower() in _NAMES), "")
