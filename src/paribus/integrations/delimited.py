"""Text files with one row per run: CSV with any delimiter, JSONL, and a JSON list of rows."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from paribus.core.errors import UserError
from paribus.integrations.chart_export import is_chart, read_chart
from paribus.integrations.source import BLANKS, DONE, ForeignRow, ForeignSource, flatten
from paribus.integrations.text_files import find_suffix, read_text

_DELIMITERS = ",;\t|"
_SEPARATOR = re.compile(r"sep=([,;\t|])(?:\r?\n|\r)")  # the first line that Excel writes and reads
_QUOTED = re.compile(r'"[^"]*"')
_FIRST_LINE = re.compile(rf"(?:{_QUOTED.pattern}|[^\r\n])*")
_WHOLE, _FRACTION = re.compile(r"\s*[+-]?[0-9]+"), re.compile(r"[0-9]+(?:[eE][+-]?[0-9]+)?\s*%?\s*")
_NAMES = ("name", "run", "run_name")
_STATE = "state"  # the column of W&B's tables of runs, and what it says of those that have not finished
_UNFINISHED = ("crashed", "failed", "killed", "running", "preempted", "preempting", "pending")
_RULE = re.compile(r"[|:\- \t]*-[|:\- \t]*")  # below the header of a table in Markdown
_BAR = re.compile(r"[ \t]*\|[ \t]*")


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
    """The lines end at line feeds alone, or at the returns of old Macs: a text in JSON may hold other line ends."""
    for number, line in enumerate(text.split("\n" if "\n" in text else "\r"), 1):
        if line.strip(BLANKS):
            yield _read_object(f"line {number}", _parse(f"line {number} of {name}", line), name)


def _read_list(name: str, text: str) -> Iterator[ForeignRow]:
    rows = _parse(name, text)
    if not isinstance(rows, list):
        mend = 'write [{...}, {...}] with one object per run, in pandas to_json(..., orient="records")'
        raise UserError(f"{name} is not a list of rows", mend)
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
    return _make_row(place, values)


def _make_row(place: str, values: Mapping[str, Any]) -> ForeignRow:
    """A row with what its columns say of the run: its name, and that it has not finished, as W&B's tables say."""
    states = [str(cell).strip(BLANKS).lower() for column, cell in values.items() if column.lower() == _STATE]
    unfinished = next((state for state in states if state in _UNFINISHED), None)
    status = DONE if unfinished is None else f"its state is {unfinished}"
    return ForeignRow(place, values, _find_name(values), status)


def _read_csv(name: str, study: str, text: str) -> ForeignSource:
    """Only a file whose cells commas divide tells by that which decimal mark it has."""
    csv.field_size_limit(sys.maxsize)
    if given := _SEPARATOR.match(text):
        text = text[given.end() :]
    text = _open_markdown(text)
    first = _FIRST_LINE.match(text.lstrip("\r\n"))
    names = _QUOTED.sub("", first[0] if first else "")
    delimiter = given[1] if given else max(_DELIMITERS, key=names.count)  # the most frequent one in the header
    if not given and delimiter not in names and _has_blanks(text):
        delimiter = " "
    (_, top), *lines = [*_split_lines(name, text, delimiter)] or [("", [])]
    if delimiter == " " and not _are_even(top, [cells for _, cells in lines]):
        mend = "write commas: to_csv(...) in pandas, write.csv(...) in R"
        raise UserError(f"{name} has blanks between its cells, and not as many cells in each line", mend)
    header = _name_columns(name, top, [cells for _, cells in lines], delimiter)
    if len(header) < 2 or len(set(header)) < len(header):
        raise UserError(f"{name} has no header of distinct names", "name each column once in the first line")
    rows = []
    for place, cells in lines:
        full = _drop_empty_end(cells)
        if len(full) > len(header):
            mend = f"quote each cell that holds '{delimiter}'"
            raise UserError(f"{place} of {name} has {len(full)} cells for {len(header)} columns", mend)
        values = dict(zip(header, [*full, *[""] * (len(header) - len(full))], strict=True))
        rows.append(_make_row(place, values))
    decimal = "." if delimiter == "," else None
    if is_chart(header):
        rows, notes = read_chart(header, rows)
        return ForeignSource(study, rows, decimal=decimal, step=header[0], notes=notes)
    return ForeignSource(study, rows, decimal=decimal)


def _open_markdown(text: str) -> str:
    """A table in Markdown without its outer bars and its rule; other texts stay as they are."""
    lines = text.split("\n")
    if len(lines) < 2 or "|" not in lines[1] or not _RULE.fullmatch(lines[1].strip(BLANKS)):
        return text
    lines[1] = ""  # so that the numbers of the other lines stay
    return "\n".join(_BAR.sub("|", line.strip(BLANKS)).removeprefix("|").removesuffix("|") for line in lines)


def _has_blanks(text: str) -> bool:
    """Whether every line that is not empty has blanks between its cells."""
    lines = [line.split() for line in text.splitlines()]
    return all(len(cells) > 1 for cells in lines if cells)


def _are_even(top: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether all rows have as many cells as the header, or all have one more: the names that R and pandas write."""
    more = {len(_drop_empty_end(cells)) - len(_drop_empty_end(top)) for cells in rows}
    return more in ({0}, {1})


def _name_columns(name: str, top: Sequence[str], rows: Sequence[Sequence[str]], delimiter: str) -> list[str]:
    """The header. The name is empty for a column that has none: the names of rows that R and pandas write.

    It is the first column if every row has one cell more than the header, and each row another first cell. Raises
    UserError if the cell may as well come from decimal commas without quotes.
    """
    header = _drop_empty_end([cell.strip(BLANKS) for cell in top])
    if max((len(_drop_empty_end(cells)) for cells in rows), default=0) != len(header) + 1:
        return header
    if all(len(cells) == len(top) for cells in rows):
        named = [*header, ""]
    elif all(len(cells) == len(top) + 1 for cells in rows) and len({cells[0] for cells in rows}) == len(rows):
        named = ["", *header]
    else:
        return header
    first = [cells[0].strip(BLANKS) for cells in rows]
    counts = named[0] == "" and first in ([str(at + start) for at in range(len(rows))] for start in (0, 1))
    if delimiter == "," and not counts:
        for at in range(len(header)):
            if all(_WHOLE.fullmatch(cells[at]) and _FRACTION.fullmatch(cells[at + 1]) for cells in rows):
                parts = f"{rows[0][at]},{rows[0][at + 1]}"
                cause = (
                    f"{name} has one cell more than names in every row: a column without a name, or {parts} is one cell"
                )
                raise UserError(cause, f'name that column in the first line, or write "{parts}" in quotes')
    return named


def _split_lines(name: str, text: str, delimiter: str) -> Iterator[tuple[str, list[str]]]:
    """(where it is, its cells) of each line that is not empty. A quoted cell may hold line ends."""
    padded = delimiter == " "  # several blanks are one
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=padded, strict=True)
    try:
        for cells in lines:
            if any(cell.strip(BLANKS) for cell in cells):
                yield f"line {lines.line_num}", cells
    except csv.Error as error:
        raise UserError(f"line {lines.line_num} of {name} is not CSV ({error})", "export the file again") from error


def _drop_empty_end(cells: Sequence[str]) -> list[str]:
    """Without the empty cells behind the last one that is not: some programs end each line with a delimiter."""
    ends = [at for at, cell in enumerate(cells, 1) if cell.strip(BLANKS)]
    return list(cells[: max(ends, default=0)])


def _find_name(values: Mapping[str, Any]) -> str:
    """The run's name. A first column without a name holds the names of rows, if it does not just count them."""
    named = (str(value).strip(BLANKS) for key, value in values.items() if key.lower() in _NAMES)
    first = str(values.get("", "")).strip(BLANKS) if next(iter(values), None) == "" else ""
    return next(named, "" if first.isdecimal() else first)
