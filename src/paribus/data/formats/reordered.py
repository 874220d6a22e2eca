"""Rows of sentences of one document whose parts are permuted (ERNIE 2, arXiv 1907.12412, section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import permutations
from math import factorial

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.core.noise import integers
from paribus.data.formats.full_sentences import check_length, index_sentences
from paribus.data.formats.input_format import Draw, Index, InputFormat, Segments, Store
from paribus.data.mask_schedule import Dynamic, MaskSchedule
from paribus.data.sequences import Ints, exclusive_cumsum

MOST = 6  # parts, which make 873 classes


@dataclass(frozen=True)
class Reordered(InputFormat):
    """Whole sentences of a document, cut at random into one to `parts` runs, which are permuted.

    The label is the class of the permutation: 0 for one part, then those of two, of three and so on in lexicographic
    order. Classes are drawn evenly, of those that the number of sentences allows.

    Raises UserError for a length without room for text, and for a number of parts below 2 or above 6.
    """

    parts: int = 3
    redraw: MaskSchedule = field(default_factory=Dynamic, kw_only=True)

    def __post_init__(self) -> None:
        check_length(self.length)
        if not 2 <= self.parts <= MOST:
            raise UserError(f"{self.parts} parts of a reordered text", f"give a number from 2 to {MOST}")

    def index(self, store: Store, length: int, draw: Draw) -> Index:
        return ReorderedIndex(index_sentences(store, length, cross=False, bare=True), draw, list_orders(self.parts))


@dataclass(frozen=True)
class ReorderedIndex:
    """The rows of one pass. plain: in the order of the text; orders: the permutation of each class."""

    plain: Index
    draw: Draw
    orders: list[tuple[int, ...]]

    @property
    def length_N(self) -> NDArray[np.int32]:
        return self.plain.length_N

    @property
    def report(self) -> dict[str, float]:
        return self.plain.report

    def segments(self, rows_B: Ints) -> Segments:
        """One segment per sentence, in the order of the permuted parts; a separator ends the row."""
        plain = self.plain.segments(rows_B)
        assert isinstance(plain, Segments)
        count_B = np.bincount(plain.row_S, minlength=len(rows_B))
        noise = self.draw(rows_B)
        known_B = np.array([count_classes(min(int(count), len(self.orders[-1]))) for count in count_B])
        class_B = integers(noise.bits("class", 1)[:, 0], known_B)
        cut_BG = noise.bits("cut", max(1, int(count_B.max(initial=1)) - 1))
        order_S = np.arange(len(plain.row_S))
        for row, (kind, count, first) in enumerate(zip(class_B, count_B, exclusive_cumsum(count_B), strict=True)):
            order = self.orders[kind]
            # parts end at the gaps between sentences that have the smallest draws
            cuts = np.sort(np.argsort(cut_BG[row, : count - 1], kind="stable")[: len(order) - 1]) + 1
            parts = np.split(np.arange(count), cuts)
            order_S[first : first + count] = first + np.concatenate([parts[at] for at in order])
        start_S, length_S = plain.start_S[order_S], plain.length_S[order_S]
        return Segments(plain.row_S, start_S, length_S, plain.close_S, label_B=class_B)


def list_orders(parts: int) -> list[tuple[int, ...]]:
    """The permutation of each class: of one part, of two, up to `parts`."""
    return [order for number in range(1, parts + 1) for order in permutations(range(number))]


def count_classes(parts: int) -> int:
    """How many classes there are of one to `parts` parts."""
    return sum(factorial(number) for number in range(1, parts + 1))
