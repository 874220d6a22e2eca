"""Rows of one segment, framed `[CLS] x [SEP]`.   SpanBERT (arXiv 1907.10529), section 3.3

A row is whole sentences of one document, as many as fit, with no separator between them, so that spans may cross
sentences. SpanBERT's code skips a sentence that is too long for a row; here it is cut into rows that fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from paribus.data.formats.full_sentences import CHUNK, check_length, walk
from paribus.data.formats.input_format import Draw, InputFormat, Segments, Store
from paribus.data.sequences import Ints, number_within

FRAME: Final = 2  # [CLS] and [SEP]


@dataclass(frozen=True)
class OneSegmentIndex:
    """The rows of one split, in the corpus' order."""

    start_N: Ints
    length_N: NDArray[np.int32]  # with the frame
    report: ClassVar[dict[str, float]] = {}

    def segments(self, rows_B: Ints) -> Segments:
        row_S = np.arange(len(rows_B))
        return Segments(
            row_S, self.start_N[rows_B], self.length_N[rows_B].astype(np.int64) - FRAME, np.ones_like(row_S)
        )


@dataclass(frozen=True)
class OneSegment(InputFormat):
    """Whole sentences of one document up to the budget, as one segment. Rows are shorter, so batch by token count.

    Nothing is sampled, so that every pass has the same rows.
    Raises UserError for a length without room for text.
    """

    def __post_init__(self) -> None:
        check_length(self.length)

    def index(self, store: Store, length: int, draw: Draw) -> OneSegmentIndex:
        parts = [np.zeros((2, 0), np.int64), *_pack(store, length - FRAME)]
        start_N, tokens_N = np.concatenate(parts, axis=1)
        return OneSegmentIndex(start_N, (tokens_N + FRAME).astype(np.int32))


def _pack(store: Store, budget: int) -> Iterator[Ints]:
    """[2, N], starts and tokens of rows, of about CHUNK sentences at a time, which bounds memory.

    A sentence that is too long becomes several rows; rows without tokens are dropped.
    """
    end_D = np.unique(store.document_start)
    first = 0
    while first < end_D[-1]:
        last = int(end_D[min(int(np.searchsorted(end_D, first + CHUNK)), len(end_D) - 1)])
        edge_S = store.sentence_start[first : last + 1]
        number_S = np.arange(last - first)
        document_S = end_D[np.searchsorted(end_D, number_S + first, side="right")] - first
        fitting_S = np.searchsorted(edge_S, edge_S[:-1] + budget, side="right") - 1
        after_S = np.minimum(np.maximum(fitting_S, number_S + 1), document_S)
        first_N = walk(after_S)
        start_N, tokens_N = edge_S[first_N], edge_S[after_S[first_N]] - edge_S[first_N]
        parts_N = -(-tokens_N // budget)
        skip_M = number_within(parts_N) * budget
        left_M = np.repeat(tokens_N, parts_N) - skip_M
        yield np.stack([np.repeat(start_N, parts_N) + skip_M, np.minimum(budget, left_M)])
        first = last
