"""Files of text: plain, JSON lines or parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby
from pathlib import Path
from typing import Any, ClassVar

from paribus.data.corpus.document import LONGEST, Corpus, Document, in_parts, paragraphs
from paribus.data.corpus.sentences import Splitter
from paribus.data.corpus.splits import check_share, cut
from paribus.data.corpus.text_files import TextFile, find, identify_files
from paribus.data.corpus.text_rows import RowReader

Blocks = tuple[str, Iterable[str]]  # a document's name and its paragraphs, or runs of paragraphs


@dataclass(frozen=True)
class Text(Corpus):
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
    semantics: ClassVar[int] = 3

    def __post_init__(self) -> None:
        check_share(self.validation)
        RowReader(errors=self.errors)

    @cached_property
    def reader(self) -> RowReader:
        return RowReader(self.text_column, self.id_column, self.errors)

    @cached_property
    def files(self) -> list[TextFile]:
        return find(self.path)

    def source(self) -> Any:
        return [identify_files(self.files), self.text_column, self.id_column, self.errors]

    def documents(self, cache: Path) -> Iterator[Document]:
        for file in self.files:
            documents = chain.from_iterable(in_parts(*blocks, file.split) for blocks in self._blocks(file))
            characters = self._measure_lone(file)
            yield from cut(documents, characters, self.validation) if characters else documents

    def _blocks(self, file: TextFile) -> Iterator[Blocks]:
        if file.kind != "text":
            return ((row.name, [paragraphs(row.text)]) for row in self.reader.rows(file))
        lines = map(paragraphs, self.reader.lines(file))
        runs = (run for filled, run in groupby(lines, key=bool) if filled)
        return ((f"{file.name}#{number}", run) for number, run in enumerate(runs))

    def _measure_lone(self, file: TextFile) -> int:
        """The length of the only document without a split if it is too long to be held, otherwise 0.

        Where it is cut into splits depends on its length, so it is read twice.
        """
        undecided = [one for one in self.files if one.split is None]
        if undecided != [file] or file.path.stat().st_size <= LONGEST:
            return 0
        blocks = self._blocks(file)
        first = next(blocks, None)
        parts = [(part.part, len(part.text)) for part in in_parts(*first, None)] if first else []
        return sum(size for _, size in parts) if len(parts) > 1 and next(blocks, None) is None else 0
