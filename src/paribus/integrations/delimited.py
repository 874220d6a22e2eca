"""Text files with one row per run: CSV with any delimiter, JSONL, and a JSON list of rows."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from paribus.core.errors import UserError
from paribus.integrations.chart_export import is_chart, read_chart
from paribus.integrations.source import BLANKS, ForeignRow, ForeignSource, flatten
from paribus.integrations.text_files import find_suffix, read_text

_DELIMITERS = ",;\t|"
_SEPARATOR = re.compile(r"sep=([,;\t|])\r?\n")  # the first line that Excel writes and reads
_QUOTED = re.compile(r'"[^"]*"')
_NAMES = ("name", "run", "run_name")


def read(name: str) -> ForeignSource:
    """The rows of a file. Raises UserError for one that is not text, or has no header or surplus cells."""
    path = Path(name).expanduser()
    text, suffix = read_text(path), find_suffix(path)
    study = path.name.partition(".")[0] or path.stem
    if suffix in (".jsonl", ".ndjson"):
        return ForeignSource(study, list(_read_jsonl(name, text)))
    if suffix == ".json":
        return ForeignSource(study, list(_read_list(name, text)))
    return _read_csv(name, study, text)


def _read_jsonl(name: str, text: str) -> Iterator[ForeignRow]:
    """The lines end at line feeds alone: a text in JSON may hold the other line ends of Unicode."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip(BLANKS):
            yield _read_object(f"line {number}", _parse(f"line {number} of {name}", line), name)


def _read_list(name: str, text: str) -> Iterator[ForeignRow]:
    rows = _parse(name, text)
    if not isinstance(rows, list):
        raise UserError(f"{name} is not a list of rows", "write [{...}, {...}] with one object per run")
    for number, content in enumerate(rows, 1):
        yield _read_object(f"row {number}", content, name)


def _parse(place: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{place} is not JSON ({error})", "write one object per run, each on a line of its own"
        ) from error


def _read_object(place: str, content: object, name: str) -> ForeignRow:
    if not isinstance(content, dict):
        raise UserError(f"{place} of {name} is not a JSON object", "write one object per run")
    values = dict(flatten(content))
    return ForeignRow(place, values, _find_name(values))


def _read_csv(name: str, study: str, text: str) -> ForeignSource:
    """Only a file whose cells commas divide tells by that which decimal mark it has."""
    csv.field_size_limit(sys.maxsize)
    if given := _SEPARATOR.match(text):
        text = text[given.end() :]
    first = _QUOTED.sub("", re.split("[\r\n]", text.lstrip("\r\n"), maxsplit=1)[0])
    delimiter = given[1] if given else max(_DELIMITERS, key=first.count)  # the most frequent one in the header
    lines = _split_lines(name, text, delimiter)
    _, header = next(lines, ("", []))
    header = _drop_empty_end([cell.strip(BLANKS) for cell in header])
    if len(header) < 2 or len(set(header)) < len(header):
        raise UserError(f"{name} has no header of distinct names", "name each column once in the first line")
    rows = []
    for place, cells in lines:
        full = _drop_empty_end(cells)
        if len(full) > len(header):
            raise UserError(f"{place} of {name} has {len(full)} cells for {len(header)} columns", "quote its commas")
        values = dict(zip(header, [*full, *[""] * (len(header) - len(full))], strict=True))
        rows.append(ForeignRow(place, values, _find_name(values)))
    decimal = "." if delimiter == "," else None
    if is_chart(header):
        rows, notes = read_chart(header, rows)
        return ForeignSource(study, rows, decimal=decimal, step=header[0], notes=notes)
    return ForeignSource(study, rows, decimal=decimal)


def _split_lines(name: str, text: str, delimiter: str) -> Iterator[tuple[str, list[str]]]:
    """(where it is, its cells) of each line that is not empty. A quoted cell may hold line ends."""
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for cells in lines:
            if any(cell.strip(BLANKS) for cell in cells):
                yield f"line {lines.line_num}", cells
    except csv.Error as error:
        raise UserError(f"line {lines.line_num} of {name} is not CSV ({error})", "export the file again") from error


def _drop_empty_end(cells: list[str]) -> list[str]:
    """Without the empty cells behind the last one that is not: some programs end each line with a delimiter."""
    ends = [at for at, cell in enumerate(cells, 1) if cell.strip(BLANKS)]
    return cells[: max(ends, default=0)]


def _find_name(values: Mapping[str, Any]) -> str:
    return next((str(value).strip(BLANKS) for key, value in values.items() if key.lower() in _NAMES), "")
