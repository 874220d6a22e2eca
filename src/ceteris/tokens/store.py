"""The token store: one split of a corpus as memory-mapped arrays, built as a stream."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ceteris.console import bar
from ceteris.corpus.document import Document
from ceteris.corpus.sentences import Splitter
from ceteris.files import whole_folder, write_json
from ceteris.tokens.tokenizer import Tokenizer

Array = np.ndarray[Any, Any]
SEMANTICS = 1  # raised when the same text and tokenizer give another store
BATCH = 400_000  # characters that are encoded at once; bounds the memory of a build
FILES = {"ids": None, "word_start": np.uint8, "sentence_start": np.int64, "document_start": np.int64}


@dataclass(frozen=True)
class TokenStore:
    """One split, read-only; it pickles as its path. T tokens, S sentences, D documents.

    ids: uint16 or uint32 [T]; word_start: uint8 [T], 1 where a token starts a word; sentence_start: int64 [S + 1] in
    tokens; document_start: int64 [D + 1] in sentences.
    """

    folder: Path

    @cached_property
    def meta(self) -> dict[str, Any]:
        """Counts and the id type."""
        found: dict[str, Any] = json.loads((self.folder / "meta.json").read_text(encoding="utf-8"))
        return found

    @cached_property
    def ids(self) -> Array:
        return self._map("ids", np.dtype(self.meta["dtype"]))

    @cached_property
    def word_start(self) -> Array:
        return self._map("word_start", np.dtype(np.uint8))

    @cached_property
    def sentence_start(self) -> Array:
        return self._map("sentence_start", np.dtype(np.int64))

    @cached_property
    def document_start(self) -> Array:
        return self._map("document_start", np.dtype(np.int64))

    @property
    def tokens(self) -> int:
        return int(self.meta["tokens"])

    @property
    def sentences(self) -> int:
        return int(self.meta["sentences"])

    @property
    def documents(self) -> int:
        return int(self.meta["documents"])

    def _map(self, name: str, dtype: Any) -> Array:
        path = self.folder / f"{name}.bin"
        return np.memmap(path, dtype, mode="r") if path.stat().st_size else np.empty(0, dtype)

    def __reduce__(self) -> Any:
        return TokenStore, (self.folder,)


@dataclass
class _Writer:
    """Appends the parts of one split to its files."""

    folder: Path
    dtype: Any
    files: dict[str, BinaryIO] = field(default_factory=dict)
    tokens: int = 0
    sentences: int = 0
    documents: int = 0
    characters: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.files = {name: (self.folder / f"{name}.bin").open("wb") for name in FILES}
        for name in ("sentence_start", "document_start"):
            self.files[name].write(np.zeros(1, np.int64).tobytes())

    def add(self, ids_T: Array, start_T: Array, length_S: Array, document_S: Array) -> None:
        """Sentences with the number of the document that each is in; empty ones and empty documents are dropped."""
        kept_S = length_S > 0
        self.files["ids"].write(ids_T.astype(self.dtype).tobytes())
        self.files["word_start"].write(start_T.astype(np.uint8).tobytes())
        ends_S = self.tokens + np.cumsum(length_S[kept_S], dtype=np.int64)
        self.files["sentence_start"].write(ends_S.tobytes())
        own_S = document_S[kept_S]
        last_S = np.flatnonzero(np.diff(own_S, append=-1))
        self.files["document_start"].write((self.sentences + 1 + last_S).astype(np.int64).tobytes())
        self.tokens += len(ids_T)
        self.sentences += int(kept_S.sum())
        self.documents += len(last_S)

    def close(self) -> None:
        """Flush everything and write the counts."""
        for file in self.files.values():
            file.close()
        counts = {name: getattr(self, name) for name in ("tokens", "sentences", "documents", "characters")}
        write_json(self.folder / "meta.json", {**counts, "dtype": np.dtype(self.dtype).name})


@dataclass
class _Batch:
    """Whole documents of one split, as sentences."""

    split: str
    sentences: list[str] = field(default_factory=list)
    document_S: list[int] = field(default_factory=list)
    characters: int = 0


def build(documents: Iterable[Document], tokenizer: Tokenizer, splitter: Splitter, folder: Path, characters: int = 0) -> None:
    """Write `folder/<split>/` for every split among the documents; whole or not at all.

    Memory is bounded by the largest document. `characters` is the size for the progress bar.

    Raises:
        UserError: where the disk is full.
    """
    dtype = np.uint16 if tokenizer.vocabulary.size <= 1 << 16 else np.uint32
    writers: dict[str, _Writer] = {}
    with whole_folder(folder) as work, bar("tokenizing", characters, "char", scale=True) as moved:
        for batch, encodings in _encoded(_batches(documents, splitter), tokenizer):
            writer = writers.get(batch.split) or writers.setdefault(batch.split, _Writer(work / batch.split, dtype))
            writer.add(*encodings, np.array(batch.document_S, np.int64))
            writer.characters += batch.characters
            moved.update(batch.characters)
        for writer in writers.values():
            writer.close()


def _encoded(batches: Iterator[_Batch], tokenizer: Tokenizer) -> Iterator[tuple[_Batch, list[Any]]]:
    """Each batch with its encodings; the next one is encoded while this one is written."""
    with ThreadPoolExecutor(1) as pool:
        waiting = None
        for batch in batches:
            coming = (batch, pool.submit(tokenizer.flat, batch.sentences))
            if waiting is not None:
                yield waiting[0], waiting[1].result()
            waiting = coming
        if waiting is not None:
            yield waiting[0], waiting[1].result()


def _batches(documents: Iterable[Document], splitter: Splitter) -> Iterator[_Batch]:
    """Batches of about BATCH characters, one split each; a document is never cut."""
    open_: dict[str, _Batch] = {}
    for number, document in enumerate(documents):
        assert document.split is not None
        batch = open_.setdefault(document.split, _Batch(document.split))
        for paragraph in document.text.split("\n"):
            found = splitter(paragraph)
            batch.sentences += found
            batch.document_S += [number] * len(found)
        batch.characters += len(document.text)
        if batch.characters >= BATCH:
            yield open_.pop(document.split)
    yield from open_.values()
