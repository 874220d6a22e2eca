"""A part of a token store, as whole documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from paribus.core.errors import UserError

if TYPE_CHECKING:
    from paribus.data.corpus.sentences import Splitter
    from paribus.data.tokens.store import TokenStore
    from paribus.data.tokens.tokenizer import Tokenizer

Array = np.ndarray[Any, Any]
GOLDEN = 0.6180339887498949  # multiples of it modulo 1 spread evenly, however many are taken


@dataclass(frozen=True)
class Sample:
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


def sample_store(store: TokenStore | Sample, tokens: int) -> TokenStore | Sample:
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
    return _gather(store, sorted(spans))


def _gather(store: TokenStore | Sample, spans: list[tuple[int, int]]) -> Sample:
    """The sentences first..stop of each span as one document each."""
    starts = np.asarray(store.sentence_start)
    pieces = [slice(int(starts[first]), int(starts[stop])) for first, stop in spans]
    lengths = np.concatenate([np.diff(starts[first : stop + 1]) for first, stop in spans])
    return Sample(
        np.concatenate([store.ids[piece] for piece in pieces]),
        np.concatenate([store.word_start[piece] for piece in pieces]),
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate([[0], np.cumsum([stop - first for first, stop in spans])]).astype(np.int64),
        None if store.annotated is None else np.concatenate([store.annotated[piece] for piece in pieces]),
    )


def store_text(text: str, tokenizer: Tokenizer, splitter: Splitter) -> Sample:
    """A text as a store of one document.

    Raises UserError for a text without tokens.
    """
    batch = tokenizer.flat(splitter(" ".join(text.split())))
    length_S = batch.length_S[batch.length_S > 0]
    if not len(length_S):
        raise UserError(f"text={text!r} holds no token", "give a sentence")
    starts = np.concatenate([[0], np.cumsum(length_S)]).astype(np.int64)
    return Sample(batch.ids_T, batch.word_start_T, starts, np.array([0, len(length_S)]))
