"""CSV and TSV files: what separates their cells, and whether quotes enclose cells or are letters."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from paribus.core.errors import UserError
from paribus.core.text_files import split_lines

if TYPE_CHECKING:
    import pyarrow as pa

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
BLOCK = 1 << 20, 1 << 30  # bytes of a file that are read at once, which have to hold a whole row


def read_delimited(
    text: str, strings: Sequence[str], wanted: Sequence[str], numbered: bool, tabs: bool, where: str
) -> pa.Table:
    """The rows of a CSV file, or with `tabs` of a TSV file.

    Args:
        strings: columns that are always text.
        wanted: names of the columns that are asked for; they tell the delimiter of a CSV file.
        numbered: the file has no header, and columns are named by their number, from 1.

    Raises UserError, whose message begins with `where`, for a file that can be read in two ways, and Arrow's errors for
    rows of different lengths.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow

    if tabs:
        parsing = arrow.ParseOptions(delimiter="\t", quote_char='"' if encloses_cells(text, numbered, where) else False)
    else:
        parsing = arrow.ParseOptions(delimiter="," if numbered else find_delimiter(text, wanted, where))
    parsing.newlines_in_values = bool(parsing.quote_char)
    content = text.encode()
    reading = arrow.ReadOptions(block_size=min(max(BLOCK[0], len(content) + 1), BLOCK[1]))
    if numbered:
        reading.autogenerate_column_names = True  # f0, f1, ...
        strings = [f"f{int(name) - 1}" for name in strings]
    types = arrow.ConvertOptions(column_types=dict.fromkeys(strings, pa.string()))
    table = arrow.read_csv(io.BytesIO(content), read_options=reading, parse_options=parsing, convert_options=types)
    return table.rename_columns([str(int(name[1:]) + 1) for name in table.column_names]) if numbered else table


def find_delimiter(text: str, wanted: Sequence[str], where: str) -> str:
    """The delimiter with which the header holds all wanted columns; a comma if none does.

    Raises UserError, whose message begins with `where`, if two delimiters do.
    """
    headers = read_headers(text)
    fitting = [mark for mark, header in headers.items() if len(header) > 1 and set(wanted) <= set(header)]
    if wanted and len(fitting) > 1:
        ways = " and by ".join(DELIMITERS[delimiter] for delimiter in fitting)
        raise UserError(f"{where} has the columns {', '.join(wanted)} if cells are separated by {ways}",
                        "rename the columns so that no name holds a delimiter")  # fmt: skip
    return fitting[0] if wanted and fitting else ","


def read_headers(text: str) -> dict[str, list[str]]:
    """{delimiter: the cells of the header if it separates them}."""
    return {mark: next(filter(None, _read_rows(text, mark, strict=False)), []) for mark in DELIMITERS}


def encloses_cells(text: str, numbered: bool, where: str) -> bool:
    """Whether the quotes of a TSV file enclose cells, as the csv module reads them, or are letters.

    They are letters if all lines have as many cells and some quote opens a cell that none closes. Otherwise they
    enclose cells, if all rows then have as many.

    Raises UserError, whose message begins with `where`, if neither is so, and for a cell that could be both: its quotes
    are not needed, and other cells of its column have none.
    """
    lines = [line.split("\t") for line in split_lines(text) if line]
    opened = [cell for line in lines for cell in line if cell.startswith('"')]
    if not opened:
        return False
    letters = len({len(line) for line in lines}) == 1
    try:
        rows = [row for row in _read_rows(text, "\t", strict=True) if row]
        enclosing = len({len(row) for row in rows}) == 1
    except csv.Error:
        enclosing = False
    if not letters and not enclosing:
        cause = f"{where}: its quotes are neither letters, since lines differ in their tabs, nor around whole cells"
        raise UserError(cause, "double the quotes within quoted cells, or save it as .jsonl")
    if letters and not all(len(cell) > 1 and cell.endswith('"') for cell in opened):
        return False
    if letters and enclosing and (cell := _find_doubtful(lines, numbered)):
        cause = f"{where}: the quotes of the cell {cell[:60]} may be letters, or enclose it"
        raise UserError(cause, "put quotes around all cells of its column or around none, or save it as .jsonl")
    return enclosing


def _find_doubtful(lines: Sequence[Sequence[str]], numbered: bool) -> str | None:
    """The first quoted cell without a quote or a comma in it, in a column with cells, and a header, without quotes."""
    columns: Iterator[tuple[str, ...]] = zip(*lines, strict=True)
    for column in columns:
        head, cells = ("", column) if numbered else (column[0], column[1:])
        quoted = [cell for cell in cells if cell.startswith('"')]
        if not head.startswith('"') and len(quoted) < sum(map(bool, cells)):
            for cell in quoted:
                if '"' not in cell[1:-1] and "," not in cell:
                    return cell
    return None


def _read_rows(text: str, delimiter: str, strict: bool) -> Iterator[list[str]]:
    """The rows as the csv module reads them. If `strict`, it raises csv.Error for a quote within a quoted cell."""
    csv.field_size_limit(sys.maxsize)
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=strict)
