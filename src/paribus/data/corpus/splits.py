"""Training and validation text, and the fingerprint that names a text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from paribus.core.checksums import digest, read_sealed
from paribus.core.console import bar, say
from paribus.core.errors import UserError
from paribus.core.files import write_sealed
from paribus.data.corpus.document import Corpus, Document

FEW = 256  # documents among which one is held out if the hash draws none
HELD = 32_000_000  # characters of these documents that are kept in memory at most
SEMANTICS = 2  # raised when the same source is split in another way


def check_share(validation: float) -> None:
    """Raise UserError for a share that is not between 0 and 1."""
    if not 0 < validation < 1:
        raise UserError(
            f"corpus.validation={validation} is not a share", "give a number between 0 and 1, both excluded"
        )


def hash_share(text: str) -> float:
    """A number in [0, 1) that depends on the text alone, so that new texts never move others between splits."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") / 2**64


def draw(document: Document) -> float:
    """A number in [0, 1) that depends only on the text, so that equal texts share a split."""
    key = blake2b(document.text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return (int.from_bytes(key, "little") >> 11) / 2.0**53


def split_documents(documents: Iterable[Document], validation: float = 0.05) -> Iterator[Document]:
    """Every document with its split: its source's, else by hash, so that adding documents moves no other.

    A lone document is cut: its last `validation` share is validation. If the hash draws none of a few documents, the
    one with the smallest number becomes validation; if it draws all, the one with the largest number becomes training.
    """
    stream = iter(documents)
    head: list[Document] = []
    starts = characters = 0  # documents, of which each may have parts
    for document in stream:
        head.append(document)
        starts, characters = starts + (not document.part), characters + len(document.text)
        if starts >= FEW or characters >= HELD:
            break
    following = next(stream, None)
    undecided = [document for document in head if document.split is None]
    draws = [draw(document) for document in undecided if not document.part]
    if following is None and len(draws) == 1:
        yield from (document for document in head if document.split)
        yield from cut(undecided, sum(len(document.text) for document in undecided), validation)
        return
    limit = validation  # the number below which a document is validation
    if draws and min(draws) >= validation:
        limit = math.nextafter(min(draws), 1.0)
    elif following is None and draws and max(draws) < validation:
        limit = max(draws)
    last = yield from _split_by_hash(head, limit)
    if following is not None:
        yield from _split_by_hash(chain([following], stream), validation, last)


def _split_by_hash(documents: Iterable[Document], limit: float, split: str = "train") -> Generator[Document, None, str]:
    """Documents without a split get one, the parts of a document the same one: `split` if its first part came before.

    Returns the split of the last one.
    """
    for document in documents:
        if document.split is None and not document.part:
            split = "validation" if draw(document) < limit else "train"
        yield document if document.split else document._replace(split=split)
    return split


def cut(parts: Iterable[Document], characters: int, validation: float) -> Iterator[Document]:
    """One document of known length as a training and a validation block, cut between paragraphs, sentences or words."""
    wanted = characters - max(1, round(characters * validation))
    passed = 0
    for document in parts:
        if passed + len(document.text) <= wanted:
            yield _named(document, "train")
        elif passed >= wanted:
            yield _named(document, "validation")
        else:
            yield from _cut_document(document, wanted - passed)
        passed += len(document.text)


def _named(document: Document, split: str) -> Document:
    return document._replace(id=f"{document.id}/{split}", split=split)


def _cut_document(document: Document, wanted: int) -> Iterator[Document]:
    text = document.text
    for mark in ("\n", ". ", "。", " "):
        end = text.rfind(mark, max(wanted // 2, 1), wanted + 1)
        if end >= 0 and (head := text[: end + len(mark)].strip()) and (tail := text[end + len(mark) :].strip()):
            yield _named(document._replace(text=head), "train")
            yield _named(document._replace(text=tail), "validation")
            return
    yield _named(document, "train")


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
    text_hash = blake2b(digest_size=8)
    documents: Counter[str] = Counter()
    characters: Counter[str] = Counter()
    with bar("reading", unit="char", scale=True) as progress:
        for document in split_documents(corpus.documents(cache), corpus.validation):
            split: Any = document.split
            text_hash.update(f"{split}\x00{document.text}\x01".encode("utf-8", "surrogatepass"))
            documents[split] += 1
            characters[split] += len(document.text)
            progress.update(len(document.text))
    if not documents:
        place = getattr(corpus, "path", None)
        cause = f"corpus.path={place} holds no text" if place else "the corpus is empty"
        raise UserError(cause, "give files with text")
    result = Fingerprint(text_hash.hexdigest(), dict(documents), dict(characters), dict(corpus.dropped()))
    write_sealed(path, {key: value for key, value in result._asdict().items() if key != "dropped" or value}, path.stem)
    return result
