"""FULL-SENTENCES and DOC-SENTENCES: rows of whole sentences, framed `<s> s1 </s> s2 </s> </s> t1 </s>`.

RoBERTa (arXiv 1907.11692), section 4.2, as in fairseq's TokenBlockDataset: a stream of lines is cut into blocks. A line
is a sentence with its separator; a blank line, a single separator, is between documents. `<s>` comes before each block,
so that a block may hold one token less than the model reads.

Two differences, so that no row exceeds the model and every row has something to predict: a sentence longer than the
budget, which fairseq leaves as a block that is too long, is cut into rows that fit, each closed by a separator, without
loss of text; a block of separators alone is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.data.formats.input_format import Draw, Index, InputFormat, Segments, Store, check_separators
from paribus.data.sequences import Array, Flags, Ints, concatenate_ranges, exclusive_cumsum, number_within

CHUNK = 1 << 18  # lines cut into blocks at a time, which bounds memory


@dataclass(frozen=True)
class FullSentences(InputFormat):
    """Whole sentences up to the budget, across document boundaries: fairseq's `complete`.

    Nothing is sampled, so that every pass has the same rows. separators: after each of its `sentences`, or only after
    the row's `segments`: the text of a row up to the end of a document. The rows hold the same text either way.
    Raises UserError for a length without room for text, and for unknown separators.
    """

    separators: str = "sentences"
    cross: ClassVar[bool] = True  # a row may hold sentences of several documents
    unset_values: ClassVar[Mapping[str, str]] = {"separators": "sentences"}

    def __post_init__(self) -> None:
        check_length(self.length)
        check_separators(self.separators)

    def index(self, store: Store, length: int, draw: Draw) -> Index:
        return index_sentences(store, length, cross=self.cross, bare=self.separators == "segments")


@dataclass(frozen=True)
class DocSentences(FullSentences):
    """Whole sentences of one document: fairseq's `complete_doc`. Rows are shorter, so batch by token count."""

    cross: ClassVar[bool] = False


def check_length(length: object) -> None:
    """Raise UserError if a row of `length` has no room for a token between its special tokens."""
    if not isinstance(length, int) or length < 3:
        raise UserError(
            f"input.length={length} is not valid", "give a whole number, at least 3: a token between two specials"
        )


class SentenceRows(NamedTuple):
    """Each row is a run of tokens over whole sentences, or part of one long sentence."""

    sentence_N: Array  # int64: the first
    count_N: Array  # int32: of sentences
    start_N: Array  # int64: the first token
    tokens_N: Array  # int32
    lead_N: Array  # bool: a separator of documents comes first
    trail_N: Array  # bool: a separator of documents comes last
    inner_N: Array  # int32: separators of documents between


@dataclass(frozen=True)
class SentenceIndex:
    """The rows of one split, in the corpus' order."""

    store: Store
    rows: SentenceRows
    length_N: NDArray[np.int32]
    bare: bool = False  # no separators between the sentences of a document
    report: ClassVar[dict[str, float]] = {}

    def segments(self, rows_B: Ints) -> Segments:
        """One segment per sentence; before them an empty one if a row starts with a separator."""
        chosen = SentenceRows(*(column[rows_B] for column in self.rows))
        count_B = chosen.count_N.astype(np.int64) + chosen.lead_N
        row_S = np.repeat(np.arange(len(rows_B)), count_B)
        first_B = exclusive_cumsum(count_B)
        sentence_S = concatenate_ranges(chosen.sentence_N - chosen.lead_N, count_B)
        edge, document_start = self.store.sentence_start, self.store.document_start
        start_S = np.maximum(edge[sentence_S], chosen.start_N[row_S])
        length_S = np.minimum(edge[sentence_S + 1], (chosen.start_N + chosen.tokens_N)[row_S]) - start_S
        document_S = np.minimum(np.searchsorted(document_start, sentence_S + 1), len(document_start) - 1)
        ends_S = document_start[document_S] == sentence_S + 1  # the sentence is the last of its document
        close_S = ends_S.astype(np.int64) if self.bare else np.ones_like(row_S)
        if chosen.inner_N.any():
            close_S += ends_S
        close_S[first_B + count_B - 1] = 1
        close_S[first_B + count_B - 1] += chosen.trail_N
        lead_S = first_B[chosen.lead_N]
        length_S[lead_S], close_S[lead_S] = 0, 1
        return Segments(row_S, start_S, length_S, close_S)


def index_sentences(store: Store, length: int, cross: bool, bare: bool = False) -> SentenceIndex:
    """The rows of at most `length` tokens; with `cross` a row may contain the end of a document.

    If they are `bare`, they lose the separators between the sentences of a document.
    """
    none = _narrow(*(np.zeros(0) for _ in SentenceRows._fields))
    blocks = _find_blocks(store, length - 1, cross)
    parts = [none, *(_make_rows(store, lines, range_N2, length - 1) for lines, range_N2 in blocks)]
    rows = SentenceRows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    marked_N = 1 + 2 * rows.inner_N if bare else rows.count_N + rows.inner_N  # separators of sentences and documents
    close_N = marked_N + rows.lead_N + rows.trail_N
    return SentenceIndex(store, rows, (1 + rows.tokens_N + close_N).astype(np.int32), bare)


class _Lines(NamedTuple):
    """Consecutive lines of the stream: sentences with their separator, and blanks between documents."""

    size_L: Ints
    blank_L: Flags
    sentence_L: Ints  # number of the sentence; of a blank line, of the sentence after it


def _find_blocks(store: Store, budget: int, cross: bool) -> Iterator[tuple[_Lines, Ints]]:
    """Chunks of lines with their blocks; a block cut by a chunk's end is found again in the next chunk."""
    sentences = len(store.sentence_start) - 1
    inner_D = np.unique(store.document_start)
    inner_D = inner_D[(inner_D > 0) & (inner_D < sentences)]
    blank_D = inner_D + np.arange(len(inner_D))
    first, total = 0, sentences + len(blank_D)
    while first < total:
        last = min(total, first + max(CHUNK, budget + 1))
        lines = _read_lines(store, blank_D, first, last)
        range_N2 = line_blocks(lines.size_L, budget, None if cross else lines.blank_L)
        first = last
        if last < total and len(range_N2) and range_N2[-1, 1] == len(lines.size_L):
            first = last - int(range_N2[-1, 1] - range_N2[-1, 0])
            range_N2 = range_N2[:-1]
        yield lines, range_N2


def _read_lines(store: Store, blank_D: Ints, first: int, last: int) -> _Lines:
    low, high = np.searchsorted(blank_D, [first, last])
    blank_L = np.zeros(last - first, np.bool_)
    blank_L[blank_D[low:high] - first] = True
    sentence_L = np.arange(first, last) - low - exclusive_cumsum(blank_L.astype(np.int64))
    size_L = np.ones(last - first, np.int64)
    if not blank_L.all():
        begin = int(sentence_L[0])
        size_L[~blank_L] += np.diff(store.sentence_start[begin : begin + int((~blank_L).sum()) + 1])
    return _Lines(size_L, blank_L, sentence_L)


def line_blocks(size_L: Ints, budget: int, blank_L: Flags | None = None) -> Ints:
    """Line ranges [N, 2] of the blocks of a stream of lines of these sizes, in tokens.

    Blocks are whole lines while they fit (fairseq's `complete`); a longer line is a block that exceeds the budget. If
    `blank_L` marks the lines between documents (`complete_doc`), such a line ends the block and is dropped, and blocks
    of at most one token are dropped.
    """
    edge_L: Ints = np.concatenate([[0], np.cumsum(size_L)])
    after_L = np.searchsorted(edge_L, edge_L[:-1] + budget, side="right") - 1
    after_L = np.maximum(after_L, np.arange(1, len(edge_L)))
    if blank_L is not None:
        # a block ends at the next blank line, or after it if it starts with one
        place_L = np.where(blank_L, np.arange(len(blank_L)), len(blank_L))
        after_L = np.minimum(after_L, np.minimum.accumulate(place_L[::-1])[::-1] + blank_L)
    first_N = walk(after_L)
    range_N2: Ints = np.stack([first_N, after_L[first_N]], axis=1)
    if blank_L is None:
        return range_N2
    tokens_N = edge_L[range_N2[:, 1]] - edge_L[first_N]
    return range_N2[~blank_L[first_N] & (tokens_N > 1)]


def walk(after_L: Ints) -> Ints:
    """The first lines of the blocks: from line 0, each block starts where the one before ended."""
    after, first, line = after_L.tolist(), [], 0
    while line < len(after):
        first.append(line)
        line = after[line]
    return np.asarray(first, np.int64)


def _make_rows(store: Store, lines: _Lines, range_N2: Ints, budget: int) -> SentenceRows:
    """Blocks as rows; blocks without text are dropped, blocks over the budget cut."""
    blanks_L = np.concatenate([[0], np.cumsum(lines.blank_L)])
    first_N, last_N = range_N2.T
    lead_N, trail_N = lines.blank_L[first_N], lines.blank_L[last_N - 1]
    blanks_N = blanks_L[last_N] - blanks_L[first_N]
    sentence_N, count_N = lines.sentence_L[first_N], last_N - first_N - blanks_N
    start_N = store.sentence_start[sentence_N]
    tokens_N = store.sentence_start[sentence_N + count_N] - start_N
    blocks = (sentence_N, count_N, start_N, tokens_N, lead_N, trail_N, blanks_N - lead_N - trail_N)
    rows = SentenceRows(*(column[tokens_N > 0] for column in blocks))

    room = budget - 1  # each part of a sentence that is too long has its separator
    long_N = rows.tokens_N + rows.count_N > budget
    parts_N: Ints = np.where(long_N, -(-rows.tokens_N // room), 1)
    sentence, count, start, tokens, lead, trail, inner = (np.repeat(column, parts_N) for column in rows)
    skip_M = number_within(parts_N) * room
    tokens = np.where(np.repeat(long_N, parts_N), np.minimum(room, tokens - skip_M), tokens)
    return _narrow(sentence, count, start + skip_M, tokens, lead, trail, inner)


def _narrow(*columns: Array) -> SentenceRows:
    """Columns in the widths that `SentenceRows` names, since an index stays in memory."""
    dtypes = (np.int64, np.int32, np.int64, np.int32, np.bool_, np.bool_, np.int32)
    return SentenceRows(*(column.astype(dtype) for column, dtype in zip(columns, dtypes, strict=True)))
