"""What a corpus is made of: documents, their paragraphs, and how costly ones are kept."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from paribus.core.checksums import is_stored
from paribus.core.files import whole_folder

if TYPE_CHECKING:
    from paribus.data.corpus.sentences import Splitter

FILE = "documents.jsonl"
LONGEST = 4_000_000  # characters; a longer document comes in parts


class Document(NamedTuple):
    """A text with a name.

    id: stable name. text: paragraphs, one per line, never empty. split: train, validation or test if the source names
    it. part: 0, or the number of a later part of a document too long to be held as one; parts follow each other.
    """

    id: str
    text: str
    split: str | None = None
    part: int = 0


class Corpus(ABC):
    """A source of documents in a deterministic order, read as a stream."""

    semantics: ClassVar[int] = 1  # raised when the same source gives another text

    @property
    @abstractmethod
    def sentences(self) -> Splitter | None:
        """Cuts paragraphs into sentences."""

    @property
    @abstractmethod
    def validation(self) -> float:
        """Share of the documents that is held out if the source names no such split."""

    @abstractmethod
    def documents(self, cache: Path) -> Iterator[Document]:
        """The documents. Raises UserError for what cannot be read."""

    @abstractmethod
    def source(self) -> Any:
        """Plain data that changes when the text may have changed, without reading it."""

    def dropped(self) -> Mapping[str, int]:
        """What the last pass left out, by name; nothing by default."""
        return {}


def paragraphs(text: str) -> str:
    """Non-empty lines, stripped of white space at their ends. Only \\n, \\r\\n and \\r end a line."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(line for part in lines if (line := part.strip()))


def in_parts(name: str, blocks: Iterable[str], split: str | None) -> Iterator[Document]:
    """A document from its paragraphs or runs of paragraphs, in parts of about `LONGEST` characters at most."""
    part, held, size = 0, list[str](), 0
    for block in blocks:
        for piece in _cut_long(block):
            if size + len(piece) > LONGEST and held:
                yield Document(name, "\n".join(held), split, part)
                part, held, size = part + 1, [], 0
            held.append(piece)
            size += len(piece) + 1
    if held:
        yield Document(name, "\n".join(held), split, part)


def _cut_long(text: str) -> Iterator[str]:
    """Parts of at most `LONGEST` characters, cut between paragraphs or words."""
    start = 0
    while len(text) - start > LONGEST:
        cut = max(text.rfind("\n", start, start + LONGEST), 0) or max(text.rfind(" ", start, start + LONGEST), 0)
        end = cut if cut > start else start + LONGEST
        yield text[start:end].strip()
        start = end
    if rest := text[start:].strip():
        yield rest


def write_documents(folder: Path, documents: Iterable[Document]) -> None:
    """Store documents that are costly to make in a new folder, completely or not at all."""
    with whole_folder(folder) as work, (work / FILE).open("w", encoding="utf-8") as out:
        for document in documents:
            out.write(json.dumps(document) + "\n")


def read_documents(folder: Path) -> Iterator[Document]:
    """The documents that `write_documents` kept."""
    with (folder / FILE).open(encoding="utf-8") as lines:
        for line in lines:
            yield Document(*json.loads(line))


def keep_documents(folder: Path, make: Callable[[], Iterable[Document]]) -> Iterator[Document]:
    """The documents of `folder`, which the first call makes."""
    if not is_stored(folder):
        write_documents(folder, make())
    return read_documents(folder)
