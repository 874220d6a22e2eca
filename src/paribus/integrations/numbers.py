"""Cells as numbers: which mark is the decimal one, and which unit a column has.

`1,167` is 1167 in one file and 1.167 in another. A column is read with the decimal mark under which all its cells are
numbers. If both marks fit but give different values, the spread of the values and the other columns of the file decide;
if they do not, or contradict each other, the column is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from paribus.core.errors import UserError
from paribus.integrations.column_kinds import says_percent
from paribus.integrations.source import BLANKS, ForeignRow, ForeignSource

MARKS = (".", ",")
_MISSING = ("", "na", "n/a", "none", "null", "-")
_WORDS = {"true": 1.0, "false": 0.0}
_DIVERGED = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_SPACES = " \u00a0\u2007\u2009\u202f'\u2019"  # what separates thousands in any convention
_PLAIN_HUNDREDS = re.compile(r"[+-]?[1-9][0-9]{2}")  # written with a mark if it were in thousands
_CLEARLY = 10.0  # how much wider the values would spread under the other reading


def _pattern(decimal: str) -> re.Pattern[str]:
    (other,) = (mark for mark in MARKS if mark != decimal)
    groups = rf"[1-9][0-9]{{0,2}}(?P<group>[{re.escape(other + _SPACES)}])[0-9]{{3}}(?:(?P=group)[0-9]{{3}})*"
    point = re.escape(decimal)
    plain = rf"(?:[0-9]+(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?"
    return re.compile(rf"[+-]?(?:{groups}(?:{point}[0-9]*)?|{plain})")


_PATTERNS = {mark: _pattern(mark) for mark in MARKS}


def read_column(source: ForeignSource, column: str, decimal: str | None = None) -> tuple[dict[str, float], list[str]]:
    """{text: its number} of the texts in a column that are numbers under its decimal mark, and notes. 85.2% is 0.852.

    decimal: the mark that the user gave. Raises UserError for a column that can be read in two ways.
    """
    texts = _list_numbers(source, column)
    mark, notes = _find_mark(source, column, texts, decimal)
    return {text: _read(text, mark) for text in texts}, notes


def read_columns(
    rows: Sequence[ForeignRow], columns: Iterable[str], source: ForeignSource, decimal: str | None, notes: list[str]
) -> dict[str, dict[str, float]]:
    """{column: {text: its number}} for `fill`. The whole source tells how its numbers are written.

    Raises UserError for a column that can be read in two ways, or that has two units in these rows.
    """
    known: dict[str, dict[str, float]] = {}
    for column in columns:
        known[column], said = read_column(source, column, decimal)
        _require_one_unit(rows, column, known[column])
        notes += said
    return known


def find_percents(
    rows: Sequence[ForeignRow], known: Mapping[str, Mapping[str, float]], notes: list[str]
) -> tuple[str, ...]:
    """The columns of `known` ({column: {text: its number}}) whose names say that their numbers are percents.

    A note names those that could be fractions. Raises UserError for a number above 100.
    """
    percents = tuple(filter(says_percent, known))
    for column in percents:
        plain = []
        for row in rows:
            cell = row.values.get(column)
            number = read_cell(cell, known[column])
            if number is None or not math.isfinite(number) or _has_sign(cell):
                continue
            if number > 100.0:
                cause = f"{column} says percent, and {row.place} has {cell}"
                raise UserError(cause, "correct the number, or rename the column if its numbers are no percents")
            plain.append(number)
        if plain and max(plain) <= 1.0:
            notes.append(f"{column}: {max(plain):g} is read as {max(plain):g}%, as its name says.")
    return percents


def fill(row: ForeignRow, known: Mapping[str, Mapping[str, float]], percents: Collection[str] = ()) -> ForeignRow:
    """The row with numbers in these columns: also NaN and infinities. Another text stays; an empty cell is None.

    percents: the columns whose numbers are percents also without the sign: 0.88 becomes 0.0088.
    """
    numbers: dict[str, float | str | None] = {}
    for name, texts in known.items():
        if name in row.values:
            number = read_cell(row.values[name], texts)
            if number is not None and name in percents and not _has_sign(row.values[name]):
                number /= 100.0
            numbers[name] = _keep_text(row.values[name]) if number is None else number
    return replace(row, values={**row.values, **numbers})


def _has_sign(cell: object) -> bool:
    return str(cell).strip(BLANKS).endswith("%")


def _keep_text(cell: object) -> str | None:
    return (cell.strip(BLANKS) or None) if isinstance(cell, str) else None


def read_cell(cell: object, texts: Mapping[str, float]) -> float | None:
    """The number in a cell, given those of its column's texts; true is 1. None for anything else."""
    if isinstance(cell, str):
        text = cell.strip(BLANKS)
        if text.lower() in _WORDS:
            return _WORDS[text.lower()]
        return float(text.replace("\u2212", "-")) if _is_diverged(text) else texts.get(text)
    try:
        return float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None


def is_missing(cell: object) -> bool:
    """Whether a cell is left empty, also by a word for that."""
    return cell is None or (isinstance(cell, str) and cell.strip(BLANKS).lower() in _MISSING)


def _is_diverged(text: str) -> bool:
    return _DIVERGED.fullmatch(text.replace("\u2212", "-")) is not None


def _list_numbers(source: ForeignSource, column: str) -> list[str]:
    """The distinct texts of a column that are numbers under one of the marks."""
    cells = dict.fromkeys(row.values.get(column) for row in source.rows if isinstance(row.values.get(column), str))
    texts = dict.fromkeys(str(cell).strip(BLANKS) for cell in cells)
    return [text for text in texts if any(_fits(text, mark) for mark in MARKS)]


def _bare(text: str) -> str:
    return text.replace("\u2212", "-").removesuffix("%").strip(_SPACES + BLANKS)


def _fits(text: str, mark: str) -> bool:
    return _PATTERNS[mark].fullmatch(_bare(text)) is not None


def _read(text: str, mark: str) -> float:
    (other,) = (one for one in MARKS if one != mark)
    kept = _bare(text).translate({ord(sign): None for sign in other + _SPACES}).replace(mark, ".")
    return float(kept) / 100.0 if text.endswith("%") else float(kept)


def _find_mark(source: ForeignSource, column: str, texts: Sequence[str], given: str | None) -> tuple[str, list[str]]:
    """The decimal mark of a column, and a note if the cells alone do not tell it."""
    place = f"{column} of {source.name}"
    fitting = _list_fitting(texts)
    if given is not None:
        if odd := next((text for text in texts if not _fits(text, given)), None):
            raise UserError(f"{odd} in {place} is not a number with --decimal {given}", "leave it out")
        return given, []
    if not fitting:
        first, second = (next(text for text in texts if not _fits(text, mark)) for mark in MARKS)
        raise UserError(f"{place} has numbers of two kinds: {second} and {first}", "write all with one decimal mark")
    unclear = [text for text in texts if all(_fits(text, m) for m in MARKS) and _read(text, ".") != _read(text, ",")]
    if not unclear:
        return fitting[0], []
    values = {mark: _read(unclear[0], mark) for mark in MARKS}
    ways = " or ".join(f"{values[mark]:.15g} (--decimal {mark})" for mark in MARKS)
    if len(fitting) == 1:
        (mark,) = fitting
        (other,) = (one for one in MARKS if one != mark)
        mixed = [_read(text, other if text in unclear else mark) for text in texts]
        if _spread(_read(text, mark) for text in texts) > _CLEARLY * _spread(mixed):
            clear = next(text for text in texts if not _fits(text, other))
            mend = f"write all with one decimal mark, or add --decimal {mark} if {unclear[0]} is {values[mark]:.15g}"
            raise UserError(f"{place} has numbers of two kinds: {unclear[0]} and {clear}", mend)
        return mark, []
    near, others = _compare_spreads(texts), _list_marks(source, column)
    marks = {*others, *near} or {*(source.decimal or "")}
    if len(marks) != 1:
        raise UserError(f"{place} can be read in two ways", f"{unclear[0]} is {ways}; add one of them")
    (mark,) = marks
    if not others and not near and mark in unclear[0]:
        return mark, []  # the points of a file with commas between its cells
    why = "since commas divide the cells of the file"
    if others:
        why = f"as in {next(iter(others.values()))}"
    elif near:
        why = "which is near its other numbers"
    (other,) = (one for one in MARKS if one != mark)
    return mark, [f"{column}: {unclear[0]} is read as {values[mark]:.15g}, {why} (--decimal {other} changes it)."]


def _list_fitting(texts: Iterable[str]) -> list[str]:
    listed = list(texts)
    return [mark for mark in MARKS if all(_fits(text, mark) for text in listed)]


def _compare_spreads(texts: Sequence[str]) -> list[str]:
    """The mark under which the values are clearly closer together, if some are whole hundreds without any mark."""
    if not any(_PLAIN_HUNDREDS.fullmatch(_bare(text)) for text in texts):
        return []
    spreads = {mark: _spread(_read(text, mark) for text in texts) for mark in MARKS}
    near, far = sorted(MARKS, key=lambda mark: spreads[mark])
    return [near] if spreads[far] > _CLEARLY * spreads[near] else []


def _spread(values: Iterable[float]) -> float:
    """The largest size of these values over the smallest; zeros do not count."""
    sizes = [abs(value) for value in values if value]
    return max(sizes) / min(sizes) if sizes else 1.0


def _list_marks(source: ForeignSource, column: str) -> dict[str, str]:
    """{decimal mark: a column} of the other columns of numbers in which only that mark fits."""
    marks: dict[str, str] = {}
    for other in source.columns:
        cells = [row.values.get(other) for row in source.rows if not is_missing(row.values.get(other))]
        texts = _list_numbers(source, other) if other != column else []
        whole = {str(cell).strip(BLANKS) for cell in cells if isinstance(cell, str)} == {*texts}
        if texts and whole and len(fitting := _list_fitting(texts)) == 1:
            marks.setdefault(fitting[0], other)
    return marks


def _require_one_unit(rows: Sequence[ForeignRow], column: str, texts: Mapping[str, float]) -> None:
    """Raises UserError for a column with percent signs at some of its numbers only."""
    seen: dict[bool, tuple[object, str]] = {}
    for row in rows:
        cell = row.values.get(column)
        number = read_cell(cell, texts)
        if number is not None and math.isfinite(number):
            seen.setdefault(_has_sign(cell), (cell, row.place))
    if len(seen) == 2:
        (percent, there), (plain, elsewhere) = seen[True], seen[False]
        cause = f"{column} is written as {percent} ({there}) and as {plain} ({elsewhere})"
        raise UserError(cause, "write % at all its numbers or at none")


def has_numbers(cells: Sequence[Any]) -> bool:
    """Whether every cell is a number, under some decimal mark."""
    return bool(cells) and all(_is_number(cell) for cell in cells)


def _is_number(cell: object) -> bool:
    if isinstance(cell, str):
        text = cell.strip(BLANKS)
        return text.lower() in _WORDS or _is_diverged(text) or any(_fits(text, mark) for mark in MARKS)
    return isinstance(cell, int | float)
