"""CSV and TSV files: what separates their cells, and whether quotes enclose cells or are letters."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Sequence
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
    fitting = []
    for delimiter in DELIMITERS:
        header = next(_read_rows(text, delimiter, strict=False), [])
        if len(header) > 1 and set(wanted) <= set(header):
            fitting.append(delimiter)
    if wanted and len(fitting) > 1:
        ways = " and by ".join(DELIMITERS[delimiter] for delimiter in fitting)
        raise UserError(f"{where} has the columns {', '.join(wanted)} if cells are separated by {ways}",
                        "rename the columns so that no name holds a delimiter")  # fmt: skip
    return fitting[0] if wanted and fitting else ","


def encloses_cells(text: str, numbered: bool, where: str) -> bool:
    """Whether the quotes of a TSV file enclose cells, as the csv module reads them, or are letters.

    They enclose cells if every quote that opens a cell is closed at the end of one, and letters if they do not and all
    lines have as many cells. If both are so, quotes around a cell that needs none, in a column where other cells have
    none, could be either.

    Raises UserError, whose message begins with `where`, for that, and if quotes can be neither.
    """
    lines = [line.split("\t") for line in split_lines(text) if line]
    if not any(cell.startswith('"') for line in lines for cell in line):
        return False
    letters = len({len(line) for line in lines}) == 1
    try:
        rows = [row for row in _read_rows(text, "\t", strict=True) if row]
        enclosing = len({len(row) for row in rows}) == 1
    except csv.Error:
        enclosing = False
    mend = "save it as .csv, or as .jsonl"
    if not letters and not enclosing:
        cause = f"{where}: its quotes are neither letters (lines differ in their tabs) nor around whole cells"
        raise UserError(cause, f"double the quotes within quoted cells, or {mend}")
    if letters and enclosing:
        for column in zip(*lines, strict=True):
            quoted = [cell for cell in column if cell.startswith('"')]
            header = not numbered and column[0].startswith('"')
            if header or len(quoted) == sum(map(bool, column[0 if numbered else 1 :])):
                continue
            if doubtful := next((cell for cell in quoted if not set('",') & set(cell[1:-1])), None):
                cause = f"{where}: the quotes of the cell {doubtful[:60]} may be letters, or enclose it"
                raise UserError(cause, f"put quotes around every cell of the column or around none, or {mend}")
    return enclosing


def _read_rows(text: str, delimiter: str, strict: bool) -> csv.Reader:
    """The rows as the csv module reads them; it raises csv.Error."""
    csv.field_size_limit(sys.maxsize)
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=strict)
