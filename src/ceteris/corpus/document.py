"""What a corpus is made of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol


class Document(NamedTuple):
    """id: stable name; text: paragraphs, one a line, never empty; split: where the source names it."""

    id: str
    text: str
    split: str | None = None


class Corpus(Protocol):
    """A source of documents in a deterministic order, read as a stream."""

    semantics: int
    sentences: Any  # a Splitter
    validation: float  # share of the documents, where the source names no splits

    def documents(self, cache: Path) -> Iterator[Document]:
        """The documents. Raises UserError for what cannot be read."""

    def source(self) -> Any:
        """Plain data that changes when the text may have changed, without reading it."""


def paragraphs(text: str) -> str:
    """Non-empty lines, stripped of white space at their ends."""
    return "\n".join(line for part in text.splitlines() if (line := part.strip()))
