"""Raw windows for text-to-text objectives: contiguous tokens without a frame.   T5 (arXiv 1910.10683), section 3.1.4

The corruption decides how long a window is: what the encoder reads of it, with sentinels and the end-of-sequence token,
fills `length` (`Corruption.raw_length`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.data.formats.input_format import BareRows, Draw, InputFormat, Store
from paribus.data.sequences import Ints, number_within

SHORTEST: Final = 2  # tokens of a window: one to keep, one of noise


@dataclass(frozen=True)
class WindowIndex:
    """The windows of one split, in the corpus' order."""

    start_N: Ints
    length_N: NDArray[np.int32]
    report: ClassVar[dict[str, float]] = {}

    def segments(self, rows_B: Ints) -> BareRows:
        return BareRows(self.start_N[rows_B], self.length_N[rows_B].astype(np.int64))


@dataclass(frozen=True)
class Windows(InputFormat):
    """The stream of all documents (`cross`), or each document, cut into windows of equal length.

    The last window of a stream may be shorter; one of a single token is dropped. No token separates documents.
    Raises UserError for a length without room for text.
    """

    cross: bool = True
    framed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_window(self.length)

    def index(self, store: Store, length: int, draw: Draw) -> WindowIndex:
        document_start = np.unique(store.document_start)
        edge_D = np.asarray(store.sentence_start)[document_start[[0, -1]] if self.cross else document_start]
        size_D = np.diff(edge_D)
        count_D = -(-size_D // length)
        within_N = number_within(count_D) * length
        length_N = np.minimum(np.repeat(size_D, count_D) - within_N, length)
        kept_N = length_N >= SHORTEST
        start_N = np.repeat(edge_D[:-1], count_D) + within_N
        return WindowIndex(start_N[kept_N], length_N[kept_N].astype(np.int32))


def check_window(length: object) -> None:
    """Raise UserError if a window of `length` has no room for two tokens and what follows them."""
    if not isinstance(length, int) or length <= SHORTEST:
        raise UserError(f"input.length={length} is not valid", "give a whole number, at least 3: two tokens and an end")
