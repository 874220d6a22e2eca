"""The name of a text."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from paribus.core.console import bar, say
from paribus.core.errors import UserError
from paribus.core.files import write_sealed
from paribus.core.hashing import digest
from paribus.core.sealed import read_sealed
from paribus.data.corpus.document import Corpus
from paribus.data.corpus.splits import split_documents

SEMANTICS = 2  # raised when the same source is split in another way


class Fingerprint(NamedTuple):
    """text: hash of all documents with their splits, in order; counts by split; dropped: by each rule of a filter."""

    text: str
    documents: dict[str, int]
    characters: dict[str, int]
    dropped: dict[str, int] = {}  # noqa: RUF012


def fingerprint(corpus: Corpus, cache: Path) -> Fingerprint:
    """Read the corpus once; the result is cached for its source.

    Raises:
        UserError: for an empty corpus, and for errors of the corpus.
    """
    source = [SEMANTICS, type(corpus).__name__, corpus.semantics, corpus.validation, corpus.source()]
    path = cache / "fingerprints" / f"{digest(source, 24)}.json"
    if (kept := read_sealed(path, path.stem)) is not None:
        return Fingerprint(**kept)
    say("reading the corpus")
    found = _read(corpus, cache)
    if not found.documents:
        place = getattr(corpus, "path", None)
        cause = f"corpus.path={place} holds no text" if place else "the corpus is empty"
        raise UserError(cause, "give files with text")
    write_sealed(path, {key: value for key, value in found._asdict().items() if key != "dropped" or value}, path.stem)
    return found


def _read(corpus: Corpus, cache: Path) -> Fingerprint:
    key = blake2b(digest_size=8)
    documents: Counter[str] = Counter()
    characters: Counter[str] = Counter()
    with bar("reading", unit="char", scale=True) as moved:
        for document in split_documents(corpus.documents(cache), corpus.validation):
            split: Any = document.split
            key.update(f"{split}\x00{document.text}\x01".encode("utf-8", "surrogatepass"))
            documents[split] += 1
            characters[split] += len(document.text)
            moved.update(len(document.text))
    return Fingerprint(key.hexdigest(), dict(documents), dict(characters), dict(corpus.dropped()))
