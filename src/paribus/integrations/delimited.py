"""Text files with one row per run: CSV with any delimiter, and JSONL."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

from paribus.core.errors import UserError
from paribus.integrations.source import Row, Source, flatten

_DELIMITERS = ",;\t|"
_COMMA = re.compile(r"[+-]?\d+,\d+")  # a number with a decimal comma
_NAMES = ("name", "run", "run_name")


def read(name: str) -> Source:
    """The rows of a file. Raises UserError for one that is not text, or has no header or surplus cells."""
    path = Path(name).expanduser()
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{name} cannot be read ({error})", "give a CSV or JSONL file in UTF-8") from error
    rows = _read_jsonl(name, text) if path.suffix in (".jsonl", ".ndjson") else _read_csv(name, text)
    return Source(path.stem, list(rows))


def _read_jsonl(name: str, text: str) -> Iterator[Row]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except ValueError as error:
            cause = f"line {number} of {name} is not JSON ({error})"
            raise UserError(cause, "write one object per run, each on a line of its own") from error
        if not isinstance(found, dict):
            raise UserError(f"line {number} of {name} is not a JSON object", "write one object per run")
        values = dict(flatten(found))
        yield Row(f"line {number}", values, _find_name(values))


def _read_csv(name: str, text: str) -> Iterator[Row]:
    delimiter = _find_delimiter(text)
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
        values = {key: _read_cell(cell, delimiter) for key, cell in zip(header, padded, strict=True)}
        yield Row(place, values, _find_name(values))


def _find_delimiter(text: str) -> str:
    """The one that is most frequent in the header."""
    header = text.partition("\n")[0]
    return max(_DELIMITERS, key=header.count)


def _read_cell(cell: str, delimiter: str) -> str:
    text = cell.strip()
    return text.replace(",", ".") if delimiter != "," and _COMMA.fullmatch(text) else text


def _find_name(values: dict[str, str]) -> str:
    return next((str(value) for key, value in values.items() if key.lower() in _NAMES), "")
