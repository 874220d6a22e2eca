"""Files of text: plain, JSON lines or parquet."""

from __future__ import annotations

import glob
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from ceteris.corpus.document import Document, paragraphs
from ceteris.corpus.sentences import Splitter
from ceteris.errors import UserError

KINDS = {".txt": "text", ".text": "text", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}
SPLITS = {"train": "train", "validation": "validation", "valid": "validation", "dev": "validation", "test": "test"}
LONGEST = 4_000_000  # characters; a longer document is read as several


@dataclass(frozen=True)
class Text:
    """A file, a folder or a glob. In plain text a line is a paragraph and a blank line ends a document; in JSON lines
    and parquet a row is a document. Files or folders named train, validation and test are the splits.

    Raises UserError naming the file for what cannot be read.
    """

    path: str
    sentences: Splitter
    text_column: str = "text"
    id_column: str | None = None
    errors: str = "strict"
    validation: float = 0.05
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.errors not in ("strict", "replace"):
            raise UserError(f"corpus.errors={self.errors} is unknown", "use strict or replace")
        if not 0 < self.validation < 1:
            raise UserError(f"corpus.validation={self.validation} is no share", "give a number between 0 and 1")

    @cached_property
    def root(self) -> Path:
        return Path(self.path).expanduser()

    @cached_property
    def files(self) -> list[Path]:
        """The files in the order of their names."""
        if self.root.is_file():
            return [self.root]
        if self.root.is_dir():
            inside = (p for p in self.root.rglob("*") if p.is_file() and p.suffix.lower() in KINDS)
            found = [p for p in inside if not any(part.startswith(".") for part in p.relative_to(self.root).parts)]
            if not found:
                raise UserError(f"corpus.path={self.path} holds no text", f"give files that end in {', '.join(KINDS)}")
            return sorted(found)
        found = [Path(name) for name in sorted(glob.glob(str(self.root), recursive=True)) if Path(name).is_file()]
        if not found:
            raise UserError(f"corpus.path={self.path} does not exist", "give a file, a folder or a glob")
        return found

    @cached_property
    def splits(self) -> dict[Path, str | None]:
        """The split that each file is named after; None for all where none is named validation."""
        named = {file: _split_of(file, self.root) for file in self.files}
        return named if "validation" in named.values() else dict.fromkeys(named, None)

    def source(self) -> Any:
        files = [[self._name(file), file.stat().st_size, file.stat().st_mtime_ns] for file in self.files]
        return [files, self.text_column, self.id_column, self.errors]

    def documents(self, cache: Path) -> Iterator[Document]:
        for file in self.files:
            kind = KINDS.get(file.suffix.lower(), "text")
            for name, text in getattr(self, f"_{kind}")(file):
                for part, piece in enumerate(_pieces(text)):
                    yield Document(f"{name}/{part}" if part else name, piece, self.splits[file])

    def _name(self, file: Path) -> str:
        return file.relative_to(self.root).as_posix() if self.root.is_dir() else file.name

    def _lines(self, file: Path) -> Iterator[str]:
        offset = 0
        with _opened(file) as handle:
            for line in handle:
                try:
                    yield line.decode("utf-8", self.errors).lstrip("\ufeff" if not offset else "")
                except UnicodeDecodeError as error:
                    where = f"{file}: byte {offset + error.start} is no UTF-8"
                    raise UserError(where, "convert the file, or set corpus.errors=replace") from error
                offset += len(line)

    def _text(self, file: Path) -> Iterator[tuple[str, str]]:
        number, held, size = 0, [], 0
        for line in self._lines(file):
            if text := paragraphs(line):
                held.append(text)
                size += len(text)
            if held and (not text or size > LONGEST):
                yield f"{self._name(file)}#{number}", "\n".join(held)
                number, held, size = number + 1, [], 0
        if held:
            yield f"{self._name(file)}#{number}", "\n".join(held)

    def _json(self, file: Path) -> Iterator[tuple[str, str]]:
        for number, line in enumerate(self._lines(file)):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise UserError(f"{file}: line {number + 1} is no JSON", "give one JSON object a line") from error
            self._require(list(row) if isinstance(row, dict) else [], f"{file}: line {number + 1}")
            yield self._row(file, number, row)

    def _parquet(self, file: Path) -> Iterator[tuple[str, str]]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.ParquetFile(file)
        except (pa.ArrowException, OSError) as error:
            raise UserError(f"{file} is no parquet file", "replace it or leave it out") from error
        self._require(table.schema_arrow.names, str(file))
        columns, number = [self.text_column, *([self.id_column] if self.id_column else [])], 0
        for batch in table.iter_batches(batch_size=64, columns=columns):
            for row in batch.to_pylist():
                yield self._row(file, number, row)
                number += 1

    def _require(self, columns: list[str], where: str) -> None:
        for key in ("text_column", "id_column"):
            wanted = getattr(self, key)
            if wanted is not None and wanted not in columns:
                raise UserError(f"{where} has no column '{wanted}'", f"set corpus.{key} to one of {', '.join(columns) or 'none'}")

    def _row(self, file: Path, number: int, row: dict[str, Any]) -> tuple[str, str]:
        text = row[self.text_column]
        if not isinstance(text, str | None):
            raise UserError(f"{file}: column '{self.text_column}' holds {type(text).__name__}, not text", "choose another column")
        name = f"{self._name(file)}#{number}" if self.id_column is None else str(row[self.id_column])
        return name, paragraphs(text or "")


def _opened(file: Path) -> Any:
    try:
        return file.open("rb")
    except OSError as error:
        raise UserError(f"{file} cannot be read ({error.strerror})", "check corpus.path") from error


def _split_of(file: Path, root: Path) -> str | None:
    below = file.relative_to(root).parts[:-1] if root.is_dir() else ()
    for name in (file.stem, *reversed(below)):
        word = name.lower().replace("_", "-").replace(".", "-").split("-")[0]
        if word in SPLITS:
            return SPLITS[word]
    return None


def _pieces(text: str) -> Iterator[str]:
    while len(text) > LONGEST:
        cut = text.rfind("\n", 0, LONGEST)
        cut = cut if cut > 0 else text.rfind(" ", 0, LONGEST)
        cut = cut if cut > 0 else LONGEST
        yield text[:cut].strip()
        text = text[cut:].strip()
    if text:
        yield text
