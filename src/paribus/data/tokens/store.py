"""The token store: one split of a corpus as memory-mapped arrays, built as a stream; or a sample of it in memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from paribus.core.console import bar
from paribus.core.errors import UserError
from paribus.core.files import whole_folder, write_json
from paribus.data.corpus.document import Document
from paribus.data.corpus.sentences import Splitter
from paribus.data.tokens.tokenizer import EncodedSentences, Tokenizer

Array = np.ndarray[Any, Any]
SEMANTICS = 1  # raised when the same text and tokenizer give another store
BATCH = 400_000  # characters encoded at once; bounds the memory of a build
LONGEST = 100_000  # characters of a sentence; a longer one is several, cut at spaces
FILES = ("ids", "word_start", "sentence_start", "document_start")
LOST = 200  # sentences in each batch whose lost letters are counted
BLANK, NEW_PARAGRAPH, NEW_DOCUMENT = " ", "\n", "\n\n"
SPANS = "spans.bin"  # in a separate folder
GOLDEN = 0.6180339887498949  # multiples of it modulo 1 spread evenly, however many are taken


@dataclass(frozen=True)
class TokenStore:
    """One split, read-only; it pickles as its path. T tokens, S sentences, D documents, none of them empty.

    ids: uint16 [T] if the vocabulary has at most 65,536 entries, else uint32; word_start: uint8 [T], 1 if a token
    starts a word; sentence_start: int64 [S + 1] in tokens; document_start: int64 [D + 1] in sentences. spans: the file
    of annotated spans, if the split is annotated.
    """

    folder: Path
    spans: Path | None = None

    @cached_property
    def meta(self) -> dict[str, Any]:
        """Counts and the id type."""
        meta: dict[str, Any] = json.loads((self.folder / "meta.json").read_text(encoding="utf-8"))
        return meta

    @cached_property
    def ids(self) -> Array:
        return self._map("ids", self.meta["dtype"], self.tokens)

    @cached_property
    def word_start(self) -> Array:
        return self._map("word_start", "uint8", self.tokens)

    @cached_property
    def sentence_start(self) -> Array:
        return self._map("sentence_start", "int64", self.sentences + 1)

    @cached_property
    def document_start(self) -> Array:
        return self._map("document_start", "int64", self.documents + 1)

    @cached_property
    def annotated(self) -> Array | None:
        """uint8 [T], 1 at the start of an annotated span, 2 inside, else 0; None without annotation."""
        return None if self.spans is None else _map_file(self.spans, "uint8", self.tokens)

    @property
    def tokens(self) -> int:
        return int(self.meta["tokens"])

    @property
    def sentences(self) -> int:
        return int(self.meta["sentences"])

    @property
    def documents(self) -> int:
        return int(self.meta["documents"])

    @property
    def characters(self) -> int:
        """Characters of the sentences, before the tokenizer normalizes them."""
        return int(self.meta["characters"])

    @property
    def lost(self) -> float:
        """The share of the letters that the model does not see, of a sample of sentences."""
        return float(self.meta.get("lost", 0.0))

    def _map(self, name: str, dtype: str, count: int) -> Array:
        return _map_file(self.folder / f"{name}.bin", dtype, count)

    def __reduce__(self) -> Any:
        return TokenStore, (self.folder, self.spans)


def _map_file(path: Path, dtype: str, count: int) -> Array:
    if not path.is_file() or path.stat().st_size != count * np.dtype(dtype).itemsize:
        folder = path.parent if path.name == SPANS else path.parent.parent
        raise UserError(f"{path} does not match the size in meta.json", f"delete {folder}")
    return np.asarray(np.memmap(path, dtype, mode="r")) if count else np.empty(0, dtype)


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
    open_document: int = -1
    lost: int = 0  # letters that the tokenizer does not show, of `letters` that were looked at
    letters: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.files = {name: (self.folder / f"{name}.bin").open("wb") for name in FILES}

    def add(self, batch: EncodedSentences, document_S: NDArray[np.int64], characters: int) -> None:
        """Sentences with the number of the document that each is in; empty ones and empty documents are dropped."""
        kept_S = batch.length_S > 0
        length_S, document_S = batch.length_S[kept_S], document_S[kept_S]
        new_S = np.flatnonzero(np.diff(document_S, prepend=self.open_document))
        self._write("ids", batch.ids_T.astype(self.dtype))
        self._write("word_start", batch.word_start_T)
        self._write("sentence_start", self.tokens + np.cumsum(length_S) - length_S)
        self._write("document_start", self.sentences + new_S)
        self.open_document = int(document_S[-1]) if len(document_S) else self.open_document
        self.tokens += len(batch.ids_T)
        self.sentences += len(length_S)
        self.documents += len(new_S)
        self.characters += characters

    def close(self) -> None:
        """Write the ends of the last sentence and document, and the counts."""
        self._write("sentence_start", np.array([self.tokens], np.int64))
        self._write("document_start", np.array([self.sentences], np.int64))
        for file in self.files.values():
            file.close()
        counts = {name: getattr(self, name) for name in ("tokens", "sentences", "documents", "characters")}
        lost = round(self.lost / self.letters, 4) if self.letters else 0.0
        write_json(self.folder / "meta.json", {**counts, "dtype": np.dtype(self.dtype).name, "lost": lost})

    def _write(self, name: str, values: Array) -> None:
        self.files[name].write(values.tobytes())


@dataclass
class _Part:
    """Consecutive sentences of one split."""

    split: str
    sentences: list[str] = field(default_factory=list)
    document_S: list[int] = field(default_factory=list)
    characters: int = 0


def build(
    documents: Iterable[Document], tokenizer: Tokenizer, splitter: Splitter, folder: Path, characters: int = 0
) -> None:
    """Write `folder/<split>/` for every split among the documents; completely or not at all.

    Every sentence is encoded by itself. `characters` is the size for the progress bar.
    Raises UserError if the folder cannot be written.
    """
    dtype = np.uint16 if tokenizer.vocabulary.size <= 1 << 16 else np.uint32
    writers: dict[str, _Writer] = {}
    with whole_folder(folder) as work, bar("tokenizing", characters, "char", scale=True) as progress:
        for part, batch in _encode_parts(parts(documents, splitter, tokenizer.vocabulary.spaces), tokenizer):
            writer = writers.get(part.split) or writers.setdefault(part.split, _Writer(work / part.split, dtype))
            writer.add(batch, np.array(part.document_S, np.int64), part.characters)
            lost, letters = tokenizer.count_lost(part.sentences[:: max(1, len(part.sentences) // LOST)])
            writer.lost, writer.letters = writer.lost + lost, writer.letters + letters
            progress.update(part.characters)
        for writer in writers.values():
            writer.close()


def _encode_parts(ready: Iterator[_Part], tokenizer: Tokenizer) -> Iterator[tuple[_Part, EncodedSentences]]:
    """Each part with its tokens; the next one is encoded while this one is written and split."""
    with ThreadPoolExecutor(1) as pool:
        waiting = None
        for part in ready:
            coming = (part, pool.submit(tokenizer.flat, part.sentences))
            if waiting is not None:
                yield waiting[0], waiting[1].result()
            waiting = coming
        if waiting is not None:
            yield waiting[0], waiting[1].result()


def parts(documents: Iterable[Document], splitter: Splitter, spaces: bool = False) -> Iterator[_Part]:
    """About BATCH characters of one split each, in the order of the documents; a document may be cut.

    With `spaces` a sentence begins with the white space before it: a blank line before a document, a new line before
    a paragraph, a blank before any other sentence.
    """
    filling: dict[str, _Part] = {}
    number = 0
    for document in documents:
        assert document.split is not None
        number += document.part == 0  # later parts continue the same document
        space = NEW_DOCUMENT if document.part == 0 else NEW_PARAGRAPH
        for paragraph in document.text.split("\n"):
            for sentence in splitter(paragraph):
                part = filling.get(document.split) or filling.setdefault(document.split, _Part(document.split))
                for piece in cut(sentence):
                    part.sentences.append(space + piece if spaces else piece)
                    part.document_S.append(number)
                    space = BLANK
                part.characters += len(sentence)
                if part.characters >= BATCH:
                    yield filling.pop(document.split)
            space = NEW_PARAGRAPH if space == BLANK else space
    yield from filling.values()


def cut(sentence: str) -> list[str]:
    """A sentence in parts of at most LONGEST characters, cut at the last space if there is one."""
    parts = []
    while len(sentence) > LONGEST:
        at = sentence.rfind(" ", LONGEST // 2, LONGEST + 1)
        at = at if at > 0 else LONGEST
        parts.append(sentence[:at])
        sentence = sentence[at:].lstrip()
    return [*parts, sentence]


@dataclass(frozen=True)
class MemoryStore:
    """Some documents of a store, in its order, held in memory; read like a store."""

    ids: Array
    word_start: Array
    sentence_start: Array
    document_start: Array
    annotated: Array | None = None

    @property
    def tokens(self) -> int:
        return len(self.ids)

    @property
    def sentences(self) -> int:
        return len(self.sentence_start) - 1

    @property
    def documents(self) -> int:
        return len(self.document_start) - 1


def sample_store(store: TokenStore | MemoryStore, tokens: int) -> TokenStore | MemoryStore:
    """Documents evenly spread over the store until `tokens` are reached; the store itself if it has no more.

    A larger sample contains a smaller one. The document that reaches the limit is cut at a sentence.
    Raises UserError for a limit below 1.
    """
    if tokens < 1:
        raise UserError(f"trainer.train_tokens={tokens} is below 1", "give a number of tokens, or null for all")
    if tokens >= store.tokens:
        return store
    sentence_start, document_start = np.asarray(store.sentence_start), np.asarray(store.document_start)
    order_D = np.argsort(np.arange(len(document_start) - 1) * GOLDEN % 1.0, kind="stable")
    room = tokens
    spans: list[tuple[int, int]] = []
    for document in order_D:
        first, stop = int(document_start[document]), int(document_start[document + 1])
        start = int(sentence_start[first])
        if int(sentence_start[stop]) - start > room:
            stop = max(int(np.searchsorted(sentence_start, start + room, side="right")) - 1, first + (not spans))
        if stop > first:
            spans.append((first, stop))
        room -= int(sentence_start[stop]) - start
        if room <= 0 or stop < document_start[document + 1]:
            break
    return _take_sentences(store, sorted(spans))


def _take_sentences(store: TokenStore | MemoryStore, spans: list[tuple[int, int]]) -> MemoryStore:
    """The sentences first..stop of each span as one document each."""
    starts = np.asarray(store.sentence_start)
    pieces = [slice(int(starts[first]), int(starts[stop])) for first, stop in spans]
    lengths = np.concatenate([np.diff(starts[first : stop + 1]) for first, stop in spans])
    return MemoryStore(
        np.concatenate([store.ids[piece] for piece in pieces]),
        np.concatenate([store.word_start[piece] for piece in pieces]),
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate([[0], np.cumsum([stop - first for first, stop in spans])]).astype(np.int64),
        None if store.annotated is None else np.concatenate([store.annotated[piece] for piece in pieces]),
    )


def store_text(text: str, tokenizer: Tokenizer, splitter: Splitter) -> MemoryStore:
    """A text as a store of one document.

    Raises UserError for a text without tokens.
    """
    sentences = splitter(" ".join(text.split()))
    if tokenizer.vocabulary.spaces:
        sentences = [BLANK + sentence if number else sentence for number, sentence in enumerate(sentences)]
    batch = tokenizer.flat(sentences)
    length_S = batch.length_S[batch.length_S > 0]
    if not len(length_S):
        raise UserError(f"text={text!r} holds no token", "give a sentence")
    starts = np.concatenate([[0], np.cumsum(length_S)]).astype(np.int64)
    return MemoryStore(batch.ids_T, batch.word_start_T, starts, np.array([0, len(length_S)]))
