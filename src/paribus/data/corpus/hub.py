"""Corpora of the Hugging Face hub, or local folders with the same files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from paribus.core.checksums import digest
from paribus.core.console import bar, say
from paribus.core.errors import UserError
from paribus.core.hub import patience
from paribus.data.corpus.document import Corpus, Document, in_parts, keep_documents, paragraphs
from paribus.data.corpus.sentences import Splitter
from paribus.data.corpus.splits import check_share
from paribus.data.corpus.text_files import decide_splits, find, identify_files
from paribus.data.corpus.text_rows import RowReader, Rows, TextRow, Unit


@dataclass(frozen=True)
class Set:
    """One set of the hub: its name, configuration and revision, its columns, and what makes a document of its rows."""

    name: str
    config: str | None = None
    revision: str | None = None
    text_column: str = "text"
    id_column: str | None = None
    unit: Unit = field(default_factory=Rows)

    def source(self) -> list[Any]:
        return [self.name, self.config, self.revision, self.text_column, self.id_column, repr(self.unit)]

    def __str__(self) -> str:
        return f"{self.name} ({self.config})" if self.config else self.name


@dataclass(frozen=True)
class Hub(Corpus):
    """Sets of the hub, one after the other.

    Args:
        sets: by short name.
        path: a local folder with the same files, read instead of the hub; each of several sets has a subfolder, named
            after its short name.
        streaming: read the first documents as a stream and keep only those.
        limit: the most documents of each split of a set; null for all.

    Raises UserError if a set, a column or the network is missing.
    """

    sets: Mapping[str, Set]
    sentences: Splitter | None = None
    path: str | None = None
    streaming: bool = False
    limit: int | None = None
    errors: str = "strict"
    validation: float = 0.05
    semantics: ClassVar[int] = 3

    def __post_init__(self) -> None:
        check_share(self.validation)
        if self.limit is not None and self.limit < 1:
            raise UserError(f"corpus.limit={self.limit} leaves no document", "give a positive number, or null for all")

    def source(self) -> Any:
        sets = [[name, each.source()] for name, each in self.sets.items()]
        files = [identify_files(find(str(self._folder(name)))) for name in self.sets] if self.path else []
        return [sets, files, self.limit, self.errors]

    def documents(self, cache: Path) -> Iterator[Document]:
        if self.path is None and self.streaming:
            return keep_documents(cache / "hub" / digest([self.semantics, self.source()]), self._stream)
        return self._read()

    def _stream(self) -> Iterator[Document]:
        say(f"streaming {', '.join(map(str, self.sets.values()))} (once)")
        with bar("streaming", unit="document") as progress:
            for document in self._read():
                progress.update(not document.part)
                yield document

    def _read(self) -> Iterator[Document]:
        for name, each in self.sets.items():
            for split, rows in self._read_folder(name, each) if self.path else self._read_hub(name, each):
                for row in islice(each.unit(rows), self.limit):
                    yield from in_parts(row.name, [paragraphs(row.text)], split)

    def _read_folder(self, name: str, each: Set) -> Iterator[tuple[str | None, Iterable[TextRow]]]:
        reader = RowReader(each.text_column, each.id_column, self.errors)
        for file in find(str(self._folder(name))):
            yield file.split, reader.rows(file)

    def _folder(self, name: str) -> Path:
        """The folder of the set: `path`, a subfolder with its short name, or one with its configuration."""
        folder = Path(str(self.path)).expanduser()
        if len(self.sets) > 1:
            folder /= name
            if not folder.exists():
                raise UserError(f"corpus.path={self.path} has no folder {name}", f"it needs {', '.join(self.sets)}")
        inner = folder / (self.sets[name].config or "")
        return inner if inner.is_dir() else folder

    def _read_hub(self, name: str, each: Set) -> Iterator[tuple[str | None, Iterable[TextRow]]]:
        loaded = load(each, self.streaming)
        chosen = [split for split in ("train", "validation", "test") if split in loaded]
        for split, meaning in zip(chosen, decide_splits(list(chosen)), strict=True):
            yield meaning, _read_rows(each, f"{name}/{split}", loaded[split])


def load(source: Set, streaming: bool) -> Any:
    """The splits of a set, from the hub or from the cache of `datasets`.

    Raises UserError if it cannot be loaded, and at once if the hub cannot be reached.
    """
    from datasets import load_dataset

    with patience():
        try:
            return load_dataset(source.name, source.config, revision=source.revision, streaming=streaming)
        except Exception as error:  # the hub's client raises errors of many libraries
            cause = f"{source} cannot be loaded from the hub ({type(error).__name__}: {str(error)[:160]})"
            raise UserError(cause, "check the network, or give a local folder with corpus.path=FOLDER") from error


def _read_rows(source: Set, where: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[TextRow]:
    for number, row in enumerate(rows):
        for key in ("text_column", "id_column"):
            if (column := getattr(source, key)) is not None and column not in row:
                cause = f"{source} has no column '{column}'"
                raise UserError(cause, f"set {key} of the set to one of: {', '.join(row)}")
        name = f"{where}#{number}" if source.id_column is None else f"{where}#{row[source.id_column]}"
        yield TextRow(name, str(row[source.text_column] or ""))
