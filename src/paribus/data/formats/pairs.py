"""Pairs of segments from the token store, framed `[CLS] A [SEP] B [SEP]`.

BERT's sampler (arXiv 1810.04805, section A.2 and `create_pretraining_data.py`), rule by rule, but as arrays: where a
chunk ends and splits, and where the next one starts, depends only on its first sentence. So all chunks are drawn at
once, and a pass is a walk from each chunk to the next. Every draw is keyed by the chunk's first sentence, which no two
chunks of a pass share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.core.noise import Noise, below, integers
from paribus.data.formats.full_sentences import walk
from paribus.data.formats.input_format import Draw, InputFormat, Segments, Store, check_separators
from paribus.data.mask_schedule import Dynamic, MaskSchedule
from paribus.data.sequences import Array, Flags, Ints, concatenate_ranges, number_within

CHUNK: Final = 1 << 17  # sentences sampled at a time, which bounds memory
FRAME: Final = 3  # special tokens of a row
TRIES: Final = 10  # draws of another document; the last is used even if it is the same
PAIRS: Final = ("next", "order", "three", "distance")

SWAPPED, RANDOM = 1, 2  # labels of `three` beside 0, next
NEAR = 1  # of `distance`: B is from the same document, but not next; RANDOM: from another


@dataclass(frozen=True)
class _PairFormat(InputFormat):
    """Rows of two segments.

    pairs: `next` (B follows A, or is drawn from another document), `order` (B follows A, or the two are swapped),
    `three` (either, or neither, with a third each; StructBERT, arXiv 1908.04577, section 2.3) or `distance` (B follows
    A, is from elsewhere in the document, or from another, with a third each; ERNIE 2, arXiv 1907.12412, section 4.2).
    Raises UserError for bad settings, and for documents that allow no pairs when it is indexed.
    """

    pairs: str = "next"
    redraw: MaskSchedule = field(default_factory=Dynamic, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.length, int) or self.length < FRAME + 2:
            mend = f"give a whole number, at least {FRAME + 2}: a token in each segment"
            raise UserError(f"input.length={self.length} is not valid", mend)
        if self.pairs not in PAIRS:
            raise UserError(f"input.pairs={self.pairs} is unknown", f"choose one of {', '.join(PAIRS)}")


@dataclass(frozen=True)
class SegmentPair(_PairFormat):
    """SEGMENT-PAIR: chunks of whole sentences of a document up to a target length, split in two.

    short_seq_prob: share of documents whose target in a pass is drawn from [2, length - 3] instead of being length - 3.
    separators: after each of the two `segments`, or after each of their `sentences`, which then count as one token
    longer.
    """

    short_seq_prob: float = 0.1
    separators: str = "segments"
    unset_values: ClassVar[Mapping[str, str]] = {"separators": "segments"}

    def __post_init__(self) -> None:
        super().__post_init__()
        share = self.short_seq_prob
        if not isinstance(share, int | float) or not 0 <= share <= 1:
            raise UserError(f"input.short_seq_prob={share} is out of range", "give a share from 0 to 1")
        check_separators(self.separators)

    def index(self, store: Store, length: int, draw: Draw) -> PairIndex:
        marked = self.separators == "sentences"
        return sample_pairs(store, draw, self.pairs, length - FRAME, self.short_seq_prob, marked=marked)


@dataclass(frozen=True)
class SentencePair(_PairFormat):
    """SENTENCE-PAIR: a sentence and the next one, or one of another document, whose unused sentence then starts the
    next pair.   RoBERTa (arXiv 1907.11692), section 4.2

    Rows are far shorter than the budget, so batch by token count.
    """

    def index(self, store: Store, length: int, draw: Draw) -> PairIndex:
        return sample_pairs(store, draw, self.pairs, length - FRAME, single=True)


@dataclass(frozen=True)
class PairIndex:
    """The pairs of one pass, in the corpus' order; column 0 is A, column 1 is B, both truncated.

    label_N: 0 if B follows A, otherwise 1; of `three` 1 if B precedes A and 2 if it is random; of `distance` 1 if B is
    from elsewhere in the document and 2 if from another.
    single: number of chunks of one sentence, which have no next segment.
    marked: starts and lengths count a separator after each sentence as its last token.
    """

    store: Store
    start_N2: Ints  # in tokens
    length_N2: NDArray[np.int32]
    label_N: NDArray[np.int8]
    length_N: NDArray[np.int32]
    single: int
    pairs: str
    marked: bool

    @property
    def report(self) -> dict[str, float]:
        """The shares of labels, and what became of chunks of one sentence."""
        pairs = max(len(self.label_N), 1)
        _, previous, random = (np.bincount(self.label_N, minlength=3) / pairs).tolist()
        if self.pairs == "next":
            return {"label_rate": previous, "forced_random_share": self.single / pairs}
        first = {"three": "previous_rate", "distance": "near_rate"}.get(self.pairs, "label_rate")
        rates = {first: previous, **({} if self.pairs == "order" else {"random_rate": random})}
        return {**rates, "dropped_chunks": float(self.single)}

    def segments(self, rows_B: Ints) -> Segments:
        """One run of tokens per sentence, or what truncation left of it; a separator ends A and B."""
        edge = find_edges(self.store, self.marked)
        start_G = self.start_N2[rows_B].reshape(-1)  # G: segments, A and B of each row in turn
        end_G = start_G + self.length_N2[rows_B].reshape(-1)
        first_G = np.searchsorted(edge, start_G, side="right") - 1
        count_G = np.searchsorted(edge, end_G, side="left") - first_G
        segment_S, sentence_S = np.repeat(np.arange(len(start_G)), count_G), concatenate_ranges(first_G, count_G)
        start_S = np.maximum(edge[sentence_S], start_G[segment_S])
        end_S = np.minimum(edge[sentence_S + 1], end_G[segment_S])
        close_S = (self.marked & (end_S == edge[sentence_S + 1])).astype(np.int64)
        length_S = end_S - start_S - close_S
        close_S[np.cumsum(count_G) - 1] = 1
        row_S, part_S = np.divmod(segment_S, 2)
        label_B = self.label_N[rows_B].astype(np.int64)
        return Segments(row_S, start_S - self.marked * sentence_S, length_S, close_S, part_S, label_B)


def find_edges(store: Store, marked: bool) -> Array:
    """[S + 1]: the starts of the sentences; if they are `marked`, each is one token longer, its separator."""
    edge = store.sentence_start
    return edge + np.arange(len(edge)) if marked else edge


def sample_pairs(
    store: Store, draw: Draw, pairs: str, most: int, short: float = 0.0, single: bool = False, marked: bool = False
) -> PairIndex:
    """The pairs of one pass. A chunk of one sentence is used only by `next`.

    most: tokens of a pair. short: share of documents with a shorter target. single: A and B are one sentence each;
    otherwise they fill a target length. marked: a separator comes after each sentence.
    Raises UserError if the documents of the store allow no such pairs.
    """
    start_D = np.unique(store.document_start)
    documents, sentences = len(start_D) - 1, int(start_D[-1])
    if pairs != "order" and documents < 2:
        raise UserError(
            f"input.pairs={pairs} takes segments from another document, but the text has only {documents}",
            "mark where documents end (a blank line in text files), or set input.pairs=order",
        )
    if documents >= sentences:
        raise UserError(
            "no document of the text has two sentences, so no segment has a next one",
            "put blank lines between documents only, or choose another corpus.sentences",
        )
    edge = find_edges(store, marked)
    parts = _Sampler(pairs, most, short, single, edge, start_D, draw).sample()
    start, length, label, lone = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    closed = np.isin(start + length, edge).sum(axis=1) if marked else 0  # segments that end with a separator
    framed_N = (FRAME + length.sum(axis=1) - closed).astype(np.int32)
    return PairIndex(store, start, length, label, framed_N, int(lone.sum()), pairs, marked)


@dataclass(frozen=True)
class _Sampler:
    """Samples one pass, as `sample_pairs` says. edge [S + 1]: the starts of the sentences, in tokens; start_D [D + 1]:
    those of the documents, in sentences.
    """

    pairs: str
    most: int
    short: float
    single: bool
    edge: Array
    start_D: Ints
    draw: Draw

    def sample(self) -> Iterator[tuple[Array, ...]]:
        """start [N, 2], length [N, 2], label [N] of the rows, and [1] chunks of one sentence; by `CHUNK` sentences."""
        first, sentences = int(self.start_D[0]), int(self.start_D[-1])
        while first < sentences:
            chunks = self._draw_chunks(np.arange(first, min(first + CHUNK, sentences)))
            after_S = np.where(chunks.random_S | chunks.near_S, chunks.split_S, chunks.end_S)
            begins_N = walk(after_S - first)
            first = int(after_S[begins_N[-1]])
            yield self._make_pairs(chunks.take(begins_N))

    def _draw_chunks(self, first_S: Ints) -> _Chunks:
        """The chunk that would start at each of these consecutive sentences."""
        document_S = np.searchsorted(self.start_D, first_S, side="right") - 1
        draw_D2 = self.draw(self.start_D[document_S[0] : document_S[-1] + 1]).bits("target", 2)
        shorter_D = 2 + integers(draw_D2[:, 1], self.most - 1)
        target_D = np.where(draw_D2[:, 0] < below(self.short), shorter_D, self.most)
        target_S = target_D[document_S - document_S[0]]
        end_S = self._end(first_S, document_S, target_S, sentences=2)
        noise, count_S = self.draw(first_S), end_S - first_S
        split_S = first_S + 1 + integers(noise.bits("split", 1)[:, 0], np.maximum(count_S - 1, 1))
        draw_S, splittable_S = noise.bits("label", 1)[:, 0], count_S > 1
        random_S = swap_S = near_S = np.zeros_like(splittable_S)
        if self.pairs == "next":
            random_S = ~splittable_S | (draw_S < below(0.5))
        elif self.pairs == "order":
            swap_S = draw_S < below(0.5)
        else:
            kind_S = integers(draw_S, 3)
            random_S = (kind_S == RANDOM) & splittable_S
            if self.pairs == "three":
                swap_S = kind_S == SWAPPED
            else:
                rest_S = np.diff(self.start_D)[document_S] - count_S
                near_S = (kind_S == NEAR) & splittable_S & (rest_S > 0)
        return _Chunks(first_S, document_S, target_S, end_S, split_S, random_S, swap_S, near_S)

    def _end(self, first_S: Ints, document_S: Ints, target_S: Ints, sentences: int) -> Ints:
        """The sentence before which a run ends: after at least one sentence, at the target or the document's end.

        `sentences`: length of a run if segments are single sentences.
        """
        if self.single:
            return np.minimum(first_S + sentences, self.start_D[document_S + 1])
        enough_S = np.searchsorted(self.edge, self.edge[first_S] + target_S, side="left")
        return np.minimum(np.maximum(enough_S, first_S + 1), self.start_D[document_S + 1])

    def _make_pairs(self, chunks: _Chunks) -> tuple[Array, ...]:
        single_S = chunks.end_S - chunks.first_S == 1
        if self.pairs != "next":
            chunks = chunks.take(~single_S)
        first_N2 = np.stack([chunks.first_S, chunks.split_S], axis=1)
        last_N2 = np.stack([chunks.split_S, chunks.end_S], axis=1)
        swap_N, random_N, near_N = chunks.swap_S, chunks.random_S, chunks.near_S
        first_N2[near_N, 1], last_N2[near_N, 1] = self._draw_near(chunks.take(near_N))
        first_N2[random_N, 1], last_N2[random_N, 1] = self._draw_elsewhere(chunks.take(random_N))
        first_N2[swap_N], last_N2[swap_N] = first_N2[swap_N, ::-1], last_N2[swap_N, ::-1]
        label_N = np.where(random_N, 1 if self.pairs in ("next", "order") else RANDOM, swap_N | near_N)
        length_N2 = self.edge[last_N2] - self.edge[first_N2]
        start_N2, kept_N2 = truncate(self.edge[first_N2], length_N2, self.most, self.draw(chunks.first_S))
        return start_N2, kept_N2.astype(np.int32), label_N.astype(np.int8), single_S.sum(keepdims=True)

    def _draw_near(self, chunks: _Chunks) -> tuple[Ints, Ints]:
        """(first sentence, sentence after the last) of a B outside of each chunk, in its document."""
        begin_N, count_N = self.start_D[chunks.document_S], chunks.end_S - chunks.first_S
        rest_N = self.start_D[chunks.document_S + 1] - begin_N - count_N
        first_N = begin_N + integers(self.draw(chunks.first_S).bits("sentence", 1)[:, 0], rest_N)
        ahead_N = first_N < chunks.first_S
        first_N = np.where(ahead_N, first_N, first_N + count_N)
        left_N = chunks.target_S - (self.edge[chunks.split_S] - self.edge[chunks.first_S])
        last_N = self._end(first_N, chunks.document_S, left_N, sentences=1)
        return first_N, np.where(ahead_N, np.minimum(last_N, chunks.first_S), last_N)

    def _draw_elsewhere(self, chunks: _Chunks) -> tuple[Ints, Ints]:
        """(first sentence, sentence after the last) of a random B for each chunk."""
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
    """Runs of sentences within one document; A ends and, unless B is from elsewhere, B starts at the split."""

    first_S: Ints
    document_S: Ints
    target_S: Ints
    end_S: Ints
    split_S: Ints
    random_S: Flags
    swap_S: Flags
    near_S: Flags

    def take(self, chosen: Array) -> _Chunks:
        """These chunks, by number or by mask."""
        columns: tuple[Array, ...] = self
        return _Chunks(*(column[chosen] for column in columns))


def truncate(start_N2: Ints, length_N2: Ints, most: int, noise: Noise) -> tuple[Ints, Ints]:
    """Segments cut to `most` tokens per pair: token by token from the longer one (a tie: from B), at the front or the
    back with equal probability. How many tokens each loses is certain; a random bit decides the end of each.
    """
    kept_N2 = np.stack(count_kept(length_N2[:, 0], length_N2[:, 1], most), axis=1)
    front_N2 = np.stack([_count_heads(noise, f"front {c}", (length_N2 - kept_N2)[:, c]) for c in (0, 1)], axis=1)
    return start_N2 + front_N2, kept_N2


def count_kept(a_N: Ints, b_N: Ints, most: int | Ints) -> tuple[Ints, Ints]:
    """Tokens of A and B that truncation to `most` tokens, one number or one per pair, leaves."""
    half = most // 2
    b_kept_N = np.where(b_N <= half, b_N, np.maximum(half, most - a_N))
    b_kept_N = np.where(a_N + b_N <= most, b_N, b_kept_N)
    return np.minimum(a_N, most - b_kept_N), b_kept_N


def _count_heads(noise: Noise, stream: str, tosses_N: Ints) -> Ints:
    """How many of these fair coins show heads, one bit per coin."""
    words_N = -(-tosses_N // 32)
    row_W = np.repeat(np.arange(len(words_N)), words_N)
    word_W = number_within(words_N)
    spare_W = np.maximum(32 * (word_W + 1) - tosses_N[row_W], 0).astype(np.uint32)
    heads_W = np.bitwise_count(noise.at(stream, row_W, word_W) >> spare_W)
    return np.bincount(row_W, weights=heads_W, minlength=len(words_N)).astype(np.int64)
