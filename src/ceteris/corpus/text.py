"""Files of text: plain, JSON lines or parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby
from pathlib import Path
from typing import Any, ClassVar

from ceteris.corpus.document import Document, in_parts, paragraphs
from ceteris.corpus.files import TextFile, find
from ceteris.corpus.rows import Reader, Row
from ceteris.corpus.sentences import Splitter
from ceteris.corpus.splits import check_share


@dataclass(frozen=True)
class Text:
    """A file, a folder or a glob. In plain text a line is a paragraph and a blank line ends a document; in JSON lines
    and parquet a row is a document. Files or folders named train, validation and test are the splits.

    Raises UserError naming the file for what cannot be read.
    """

    path: str
    sentences: Splitter | None = None
    text_column: str = "text"
    id_column: str | None = None
    errors: str = "strict"
    validation: float = 0.05
    semantics: ClassVar[int] = 2

    def __post_init__(self) -> None:
        check_share(self.validation)

    @cached_property
    def reader(self) -> Reader:
        return Reader(self.text_column, self.id_column, self.errors)

    @cached_property
    def files(self) -> list[TextFile]:
        return find(self.path)

    def source(self) -> Any:
        return [identity(self.files), self.text_column, self.id_column, self.errors]

    def documents(self, cache: Path) -> Iterator[Document]:
        for file in self.files:
            for name, blocks in self._named(file):
                yield from in_parts(name, blocks, file.split)

    def _named(self, file: TextFile) -> Iterator[tuple[str, Iterator[str]]]:
        if file.kind != "text":
            yield from ((row.name, iter([paragraphs(row.text)])) for row in self.reader.rows(file))
            return
        lines = map(paragraphs, self.reader.lines(file))
        runs = (run for filled, run in groupby(lines, key=bool) if filled)
        yield from ((f"{file.name}#{number}", run) for number, run in enumerate(runs))


@dataclass(frozen=True)
class _Grouped:
    """Rows that follow each other, as documents."""

    files: Sequence[TextFile]
    reader: Reader
    group: Callable[[Iterator[Row]], Iterator[Row]]

    def documents(self) -> Iterator[Document]:
        return chain.from_iterable(map(self._of, self.files))

    def _of(self, file: TextFile) -> Iterator[Document]:
        for row in self.group(self.reader.rows(file)):
            yield from in_parts(row.name, [paragraphs(row.text)], file.split)


def identity(files: Sequence[TextFile]) -> list[list[Any]]:
    """Plain data that tells whether files may have changed: name, bytes, time of change in nanoseconds, split."""
    stats = ((file, file.path.stat()) for file in files)
    return [[file.name, stat.st_size, stat.st_mtime_ns, file.split] for file, stat in stats]
