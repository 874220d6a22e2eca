"""Pairs of segments from the token store, framed `[CLS] A [SEP] B [SEP]`.

BERT's sampler (arXiv 1810.04805, section A.2 and `create_pretraining_data.py`), rule by rule, but as arrays: where a
chunk that starts at a sentence would end, split and go on depends on that sentence alone, so that all of it is drawn at
once and the chunks of a pass are a walk along "goes on at". Every draw is keyed by the chunk's first sentence, which no
two chunks of a pass share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.core.noise import Noise, below, integers
from paribus.data.formats.blocks import walk
from paribus.data.formats.segments import Segments, Store, before, runs
from paribus.data.text import Array

CHUNK: Final = 1 << 17  # sentences that are sampled at a time, which bounds memory
FRAME: Final = 3  # specials of a row
TRIES: Final = 10  # draws of another document; the last one counts whatever it is
PAIRS: Final = ("next", "order", "three")

SWAPPED, RANDOM = 1, 2  # labels of `three` beside 0, next

Draw = Callable[[NDArray[np.int64]], Noise]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class PairIndex:
    """The pairs of one pass, in the corpus' order; column 0 is A, column 1 is B, both truncated.

    label_N: 0 where B follows A; 1 where it does not, of three kinds where it precedes A and 2 where it is random.
    single: chunks of one sentence, which have no next segment of their own.
    """

    store: Store
    start_N2: NDArray[np.int64]  # in tokens
    length_N2: NDArray[np.int32]
    label_N: NDArray[np.int8]
    length_N: NDArray[np.int32]
    single: int
    pairs: str

    @property
    def report(self) -> dict[str, float]:
        """The shares of labels, and what became of chunks of one sentence."""
        pairs = max(len(self.label_N), 1)
        _, previous, random = (np.bincount(self.label_N, minlength=3) / pairs).tolist()
        if self.pairs == "next":
            return {"label_rate": previous, "forced_random_share": self.single / pairs}
        rates = (
            {"previous_rate": previous, "random_rate": random} if self.pairs == "three" else {"label_rate": previous}
        )
        return {**rates, "dropped_chunks": float(self.single)}

    def segments(self, rows_B: Ints) -> Segments:
        """A piece for each sentence, or the part of it that truncation left; a separator ends each segment."""
        edge = self.store.sentence_start
        start_G = self.start_N2[rows_B].reshape(-1)  # G: segments, A and B of each row in turn
        end_G = start_G + self.length_N2[rows_B].reshape(-1)
        first_G = np.searchsorted(edge, start_G, side="right") - 1
        count_G = np.searchsorted(edge, end_G, side="left") - first_G
        segment_S, sentence_S = np.repeat(np.arange(len(start_G)), count_G), runs(first_G, count_G)
        start_S = np.maximum(edge[sentence_S], start_G[segment_S])
        end_S = np.minimum(edge[sentence_S + 1], end_G[segment_S])
        close_S = np.zeros_like(segment_S)
        close_S[np.cumsum(count_G) - 1] = 1
        row_S, part_S = np.divmod(segment_S, 2)
        return Segments(row_S, start_S, end_S - start_S, close_S, part_S, self.label_N[rows_B].astype(np.int64))


@dataclass(frozen=True)
class Sampler:
    """How one pass is sampled.

    pairs: `next` (B follows A, or is drawn from another document), `order` (B follows A, or the two are swapped) or
    `three` (either, or neither, with a third each; StructBERT, arXiv 1908.04577, section 2.3). But for `next`, a chunk
    of one sentence is left out. single: A and B are one sentence each; else they fill a target length.
    """

    pairs: str
    most: int  # tokens of a pair
    short: float  # share of documents with a shorter target
    single: bool

    def index(self, store: Store, draw: Draw) -> PairIndex:
        """Raises UserError where the documents of the store allow no such pairs."""
        start_D = np.unique(store.document_start)
        self._check(len(start_D) - 1, int(start_D[-1]))
        parts = _Pass(self, store.sentence_start, start_D, draw).parts()
        start, length, label, single = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        framed_N = (FRAME + length.sum(axis=1)).astype(np.int32)
        return PairIndex(store, start, length, label, framed_N, int(single.sum()), self.pairs)

    def _check(self, documents: int, sentences: int) -> None:
        if self.pairs != "order" and documents < 2:
            raise UserError(
                f"input.pairs={self.pairs} takes random segments from another document, but the text has {documents}"
                " in all",
                "mark where documents end (a blank line in text files), or take input.pairs=order",
            )
        if documents >= sentences:
            raise UserError(
                "no document of the text has two sentences, so that no segment has a next one",
                "put blank lines between documents only, or choose another corpus.sentences",
            )


@dataclass(frozen=True)
class _Pass:
    """One pass over a store: edge [S + 1] where its sentences start, start_D [D + 1] its documents, in sentences."""

    rule: Sampler
    edge: Array
    start_D: Ints
    draw: Draw

    def parts(self) -> Iterator[tuple[Array, ...]]:
        """start [N, 2], length [N, 2], label [N] of the rows, and [1] chunks of one sentence; so many at a time."""
        first, sentences = int(self.start_D[0]), int(self.start_D[-1])
        while first < sentences:
            chunks = self._chunks(np.arange(first, min(first + CHUNK, sentences)))
            after_S = np.where(chunks.random_S, chunks.split_S, chunks.end_S)
            begins_N = walk(after_S - first)
            first = int(after_S[begins_N[-1]])
            yield self._paired(chunks.take(begins_N))

    def _chunks(self, first_S: Ints) -> _Chunks:
        """The chunk that would start at each of these consecutive sentences."""
        document_S = np.searchsorted(self.start_D, first_S, side="right") - 1
        target_D = self._targets(self.draw(self.start_D[document_S[0] : document_S[-1] + 1]))
        target_S = target_D[document_S - document_S[0]]
        end_S = self._end(first_S, document_S, target_S, sentences=2)
        noise, count_S = self.draw(first_S), end_S - first_S
        split_S = first_S + 1 + integers(noise.bits("split", 1)[:, 0], np.maximum(count_S - 1, 1))
        swap_S, random_S = self._kinds(noise.bits("label", 1)[:, 0], count_S > 1)
        return _Chunks(first_S, document_S, target_S, end_S, split_S, random_S, swap_S)

    def _kinds(self, draw_S: NDArray[np.uint32], whole_S: NDArray[np.bool_]) -> tuple[Array, Array]:
        """(A and B are swapped, B is random) for chunks that can be split where `whole`."""
        if self.rule.pairs == "three":
            kind_S = integers(draw_S, 3)
            return kind_S == SWAPPED, (kind_S == RANDOM) & whole_S
        coin_S = draw_S < below(0.5)
        never_S = np.zeros_like(coin_S)
        return (never_S, ~whole_S | coin_S) if self.rule.pairs == "next" else (coin_S, never_S)

    def _targets(self, noise: Noise) -> Ints:
        """Target length of each document in this pass."""
        draw_D2 = noise.bits("target", 2)
        short_D = draw_D2[:, 0] < below(self.rule.short)
        return np.where(short_D, 2 + integers(draw_D2[:, 1], self.rule.most - 1), self.rule.most)

    def _end(self, first_S: Ints, document_S: Ints, target_S: Ints, sentences: int) -> Ints:
        """The sentence before which a run ends: at least one sentence, until it has the target or the document ends.

        `sentences`: of a run where segments are single ones.
        """
        if self.rule.single:
            return np.minimum(first_S + sentences, self.start_D[document_S + 1])
        enough_S = np.searchsorted(self.edge, self.edge[first_S] + target_S, side="left")
        return np.minimum(np.maximum(enough_S, first_S + 1), self.start_D[document_S + 1])

    def _paired(self, chunks: _Chunks) -> tuple[Array, ...]:
        single_S = chunks.end_S - chunks.first_S == 1
        if self.rule.pairs != "next":
            chunks = chunks.take(~single_S)
        first_N2 = np.stack([chunks.first_S, chunks.split_S], axis=1)
        last_N2 = np.stack([chunks.split_S, chunks.end_S], axis=1)
        swap_N, random_N = chunks.swap_S, chunks.random_S
        first_N2[random_N, 1], last_N2[random_N, 1] = self._elsewhere(chunks.take(random_N))
        first_N2[swap_N], last_N2[swap_N] = first_N2[swap_N, ::-1], last_N2[swap_N, ::-1]
        label_N = np.where(random_N, RANDOM if self.rule.pairs == "three" else 1, swap_N)
        length_N2 = self.edge[last_N2] - self.edge[first_N2]
        start_N2, kept_N2 = truncated(self.edge[first_N2], length_N2, self.rule.most, self.draw(chunks.first_S))
        return start_N2, kept_N2.astype(np.int32), label_N.astype(np.int8), single_S.sum(keepdims=True)

    def _elsewhere(self, chunks: _Chunks) -> tuple[Ints, Ints]:
        """(first sentence, sentence behind the last) of a random B for each chunk."""
        noise = self.draw(chunks.first_S)
        tried_NT = integers(noise.bits("document", TRIES), len(self.start_D) - 1)
        other_NT = tried_NT != chunks.document_S[:, None]
        other_NT[:, -1] = True
        document_N = tried_NT[np.arange(len(tried_NT)), other_NT.argmax(axis=1)]
        sentences_N = self.start_D[document_N + 1] - self.start_D[document_N]
        first_N = self.start_D[document_N] + integers(noise.bits("sentence", 1)[:, 0], sentences_N)
        left_N = chunks.target_S - (self.edge[chunks.split_S] - self.edge[chunks.first_S])
        return first_N, self._end(first_N, document_N, left_N, sentences=1)


class _Chunks(NamedTuple):
    """Runs of sentences within one document; A ends and, unless B is random, B starts at the split."""

    first_S: Ints
    document_S: Ints
    target_S: Ints
    end_S: Ints
    split_S: Ints
    random_S: NDArray[np.bool_]
    swap_S: NDArray[np.bool_]

    def take(self, chosen: Array) -> _Chunks:
        """These chunks, by number or by mask."""
        columns: tuple[Array, ...] = self
        return _Chunks(*(column[chosen] for column in columns))


def truncated(start_N2: Ints, length_N2: Ints, most: int, noise: Noise) -> tuple[Ints, Ints]:
    """Segments cut to `most` tokens a pair: token by token from the longer one (a tie: from B), at the front or the
    back with equal probability. Which segment loses how many is no matter of chance; a bit decides each token's end.
    """
    kept_N2 = np.stack(kept(length_N2[:, 0], length_N2[:, 1], most), axis=1)
    front_N2 = np.stack([_heads(noise, f"front {c}", (length_N2 - kept_N2)[:, c]) for c in (0, 1)], axis=1)
    return start_N2 + front_N2, kept_N2


def kept(a_N: Ints, b_N: Ints, most: int) -> tuple[Ints, Ints]:
    """Tokens of A and B that the rule leaves."""
    half = most // 2
    b_kept_N = np.where(b_N <= half, b_N, np.maximum(half, most - a_N))
    b_kept_N = np.where(a_N + b_N <= most, b_N, b_kept_N)
    return np.minimum(a_N, most - b_kept_N), b_kept_N


def _heads(noise: Noise, stream: str, tosses_N: Ints) -> Ints:
    """How many of so many fair coins show heads, one bit a coin."""
    words_N = -(-tosses_N // 32)
    row_W = np.repeat(np.arange(len(words_N)), words_N)
    word_W = np.arange(len(row_W)) - before(words_N)[row_W]
    spare_W = np.maximum(32 * (word_W + 1) - tosses_N[row_W], 0).astype(np.uint32)
    heads_W = np.bitwise_count(noise.at(stream, row_W, word_W) >> spare_W)
    return np.bincount(row_W, weights=heads_W, minlength=len(words_N)).astype(np.int64)


def check(length: object, pairs: object) -> None:
    """Raise UserError for a row without room for a token in each segment, or unknown pairs."""
    if not isinstance(length, int) or length < FRAME + 2:
        raise UserError(f"input.length={length}", f"give a whole number, at least {FRAME + 2}: a token in each segment")
    if pairs not in PAIRS:
        raise UserError(f"input.pairs={pairs}", f"choose one of {', '.join(PAIRS)}")
