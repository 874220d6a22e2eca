"""Training and validation text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import chain, islice

from ceteris.corpus.document import Document

FEW = 256  # documents among which one is made validation where the hash draws none


def draw(document: Document) -> float:
    """A number in [0, 1) that depends on the document alone."""
    key = blake2b(f"{document.id}\x00{document.text}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(key, "little") / 2.0**64


def split_documents(documents: Iterable[Document], validation: float = 0.05) -> Iterator[Document]:
    """Every document with its split: the one that its source names, else by hash, so that adding documents moves no other.

    A single document is cut: its last `validation` share is validation. Among a few documents of which the hash draws
    none, the one with the smallest number is validation.
    """
    stream = iter(documents)
    head = list(islice(stream, FEW))
    if len(head) == 1 and head[0].split is None:
        yield from _halves(head[0], validation)
        return
    named = any(document.split is not None for document in head)
    share = validation if named or not head else max(validation, min(map(draw, head)) + 2.0**-60)
    for number, document in enumerate(chain(head, stream)):
        limit = share if number < len(head) else validation
        yield (
            document if document.split else document._replace(split="validation" if draw(document) < limit else "train")
        )


def _halves(document: Document, validation: float) -> Iterator[Document]:
    """One document as a training and a validation block, cut between paragraphs, sentences or words."""
    wanted = int(len(document.text) * (1.0 - validation))
    for mark in ("\n", ". ", " "):
        cut = document.text.rfind(mark, len(document.text) // 2, wanted + 1)
        if cut >= 0:
            cut += len(mark)
            yield Document(f"{document.id}/train", document.text[:cut].strip(), "train")
            yield Document(f"{document.id}/validation", document.text[cut:].strip(), "validation")
            return
    yield document._replace(split="train")
