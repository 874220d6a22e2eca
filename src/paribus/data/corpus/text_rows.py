"""Files as rows of text, in bounded memory, and how consecutive rows make a document."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO, NamedTuple, cast

from paribus.core.checksums import parse
from paribus.core.errors import UserError
from paribus.core.text_files import find_encoding
from paribus.data.corpus.document import LONGEST
from paribus.data.corpus.text_files import TextFile

BLOCK = 1 << 18  # bytes read at once
LONGEST_LINE = LONGEST // 4  # characters of plain text; a longer line is cut between words

Unit = Callable[[Iterable["TextRow"]], Iterable["TextRow"]]  # what makes documents of rows


class TextRow(NamedTuple):
    """name: unique in the corpus; text: as the file has it."""

    name: str
    text: str


@dataclass(frozen=True)
class RowReader:
    """Reads rows. errors: "strict" refuses bytes that are not text in the file's encoding, "replace"
    reads them as U+FFFD.

    Raises UserError naming the file, and the byte, the line or the columns.
    """

    text_column: str = "text"
    id_column: str | None = None
    errors: str = "strict"

    def __post_init__(self) -> None:
        if self.errors not in ("strict", "replace"):
            raise UserError(f"corpus.errors={self.errors} is unknown", "use strict or replace")

    def rows(self, file: TextFile) -> Iterator[TextRow]:
        """The lines of plain text, blank ones included; the objects of JSON lines; the rows of parquet."""
        if file.kind == "text":
            return (TextRow(f"{file.name}#{at}", line) for at, line in enumerate(self.lines(file)))
        return self._json(file) if file.kind == "json" else self._parquet(file)

    def lines(self, file: TextFile) -> Iterator[str]:
        """Lines of plain text without their ends, those longer than `LONGEST_LINE` in pieces."""
        held = ""
        for block in self._decode(file):
            *whole, held = (held + block).split("\n")
            yield from whole
            while len(held) > LONGEST_LINE:
                cut = held.rfind(" ", LONGEST_LINE // 2, LONGEST_LINE) + 1 or LONGEST_LINE
                yield held[:cut]
                held = held[cut:]
        if held:
            yield held

    def _decode(self, file: TextFile) -> Iterator[str]:
        """Text with "\\n" as the only line end, without a byte order mark."""
        blocks = _read_blocks(file)
        first = next(blocks)
        encoding, mark = find_encoding(first)
        if not mark and b"\0" in first[:4] and self.errors == "strict":
            cause = f"{file.path}: byte {first.index(0)} is a NUL, as in UTF-16 without a byte order mark"
            raise UserError(cause, "convert the file, or set corpus.errors=replace")
        decoder = codecs.getincrementaldecoder(encoding)(self.errors)
        newlines = io.IncrementalNewlineDecoder(None, translate=True)
        offset = len(mark)
        for block in chain([first.removeprefix(mark)], blocks):
            waiting = len(decoder.getstate()[0])
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                where = f"{file.path}: byte {offset - waiting + error.start} is not {encoding.upper()}"
                raise UserError(where, "convert the file, or set corpus.errors=replace") from error
            offset += len(block)
            yield newlines.decode(text, final=not block)

    def _json(self, file: TextFile) -> Iterator[TextRow]:
        for number, line in enumerate(self._json_lines(file)):
            if not line.strip():
                continue
            where = f"{file.path}: line {number + 1}"
            try:
                row = parse(line)
            except ValueError as error:
                raise UserError(f"{where} is not JSON", "give one JSON object per line") from error
            if not isinstance(row, dict):
                raise UserError(f"{where} is not a JSON object", f'give lines such as {{"{self.text_column}": "..."}}')
            self._require(list(row), where)
            yield self._row(file, number, row[self.text_column], row.get(self.id_column or ""))

    def _json_lines(self, file: TextFile) -> Iterator[str]:
        """Lines without their ends, however long they are."""
        held = io.StringIO()
        for block in self._decode(file):
            first, *others = block.split("\n")
            held.write(first)
            for other in others:
                yield held.getvalue()
                held = io.StringIO()
                held.write(other)
        yield held.getvalue()

    def _parquet(self, file: TextFile) -> Iterator[TextRow]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = [self.text_column, *([self.id_column] if self.id_column else [])]
        number = 0
        try:
            with pq.ParquetFile(file.path, memory_map=True) as table:
                self._require(table.schema_arrow.names, str(file.path))
                for batch in table.iter_batches(batch_size=64, columns=columns, use_threads=False):
                    for values in zip(*(batch.column(name) for name in (columns[0], columns[-1])), strict=True):
                        text, name = (value.as_py() for value in values)
                        yield self._row(file, number, text, name)
                        number += 1
        except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
            first = next(iter(str(error).split("\n")), "") or type(error).__name__  # KeyError: a column exists twice
            raise UserError(f"{file.path} cannot be read as parquet ({first})", "replace it or leave it out") from error

    def _require(self, columns: list[str], where: str) -> None:
        for key in ("text_column", "id_column"):
            wanted = getattr(self, key)
            if wanted is not None and wanted not in columns:
                there = ", ".join(columns) or "none"
                raise UserError(f"{where} has no column '{wanted}'", f"set corpus.{key} to one of: {there}")

    def _row(self, file: TextFile, number: int, text: object, name: object) -> TextRow:
        where = f"{file.path}: row {number}"
        if isinstance(text, bytes):
            try:
                text = text.decode("utf-8", self.errors)
            except UnicodeDecodeError as error:
                cause = f"{where}, byte {error.start} is not UTF-8"
                raise UserError(cause, "convert the file, or set corpus.errors=replace") from error
        if not isinstance(text, str | None):
            cause = f"{file.path}: column '{self.text_column}' holds {type(text).__name__}, not text"
            raise UserError(cause, "set corpus.text_column to another column")
        text = text or ""
        try:
            text.encode()
        except UnicodeEncodeError as error:  # halves of surrogate pairs, which JSON can spell and UTF-8 cannot
            if self.errors == "strict":
                cause = f"{where}, character {error.start} is half of a surrogate pair"
                raise UserError(cause, "repair the file, or set corpus.errors=replace") from error
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return TextRow(f"{file.name}#{number}" if self.id_column is None else str(name), text)


def _read_blocks(file: TextFile) -> Iterator[bytes]:
    """Blocks of bytes, uncompressed; the last one is empty."""
    try:
        opener = gzip.open if file.name.lower().endswith(".gz") else open
        handle = cast(BinaryIO, opener(file.path, "rb"))
    except OSError as error:
        raise UserError(f"{file.path} cannot be read ({error.strerror})", "check corpus.path") from error
    with handle:
        try:
            while block := handle.read(BLOCK):
                yield block
        except (OSError, EOFError, zlib.error) as error:
            raise UserError(f"{file.path} cannot be read ({error})", "check or replace the file") from error
    yield b""


@dataclass(frozen=True)
class Rows:
    """Every row is a document."""

    def __call__(self, rows: Iterable[TextRow]) -> Iterable[TextRow]:
        return rows


@dataclass(frozen=True)
class Joined:
    """Consecutive rows joined to documents of at least `characters` characters, for rows that are sentences."""

    characters: int

    def __call__(self, rows: Iterable[TextRow]) -> Iterator[TextRow]:
        held: list[TextRow] = []
        size = 0
        for row in rows:
            held.append(row)
            size += len(row.text)
            if size >= self.characters:
                yield _join(held)
                held, size = [], 0
        if held:
            yield _join(held)


@dataclass(frozen=True)
class Articles:
    """WikiText's rows are lines; an article starts at a ` = Title = ` row with a blank row before and after it."""

    def __call__(self, rows: Iterable[TextRow]) -> Iterator[TextRow]:
        article: list[TextRow] = []
        heading: TextRow | None = None  # may be a title, if the row after it is blank
        after_blank = True
        for row in rows:
            blank = not row.text.strip()
            if heading is not None:
                if blank and article:
                    yield _join(article)
                    article = []
                article.append(heading)
            heading = row if after_blank and _is_title(row.text) else None
            if heading is None and not blank:
                article.append(row)
            after_blank = blank
        if heading is not None:
            article.append(heading)
        if article:
            yield _join(article)


def _is_title(line: str) -> bool:
    words = line.strip().split(" ")
    return len(words) > 2 and words[0] == words[-1] == "=" and words[1] != "=" and words[-2] != "="


def _join(rows: list[TextRow]) -> TextRow:
    return TextRow(rows[0].name, "\n".join(row.text for row in rows))
