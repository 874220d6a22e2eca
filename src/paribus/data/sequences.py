"""What moves from the token store to the model: framed rows, marks of noise, views.

B rows, L positions (a multiple of 8; rows are padded on the right), P predicted positions. The functions at the end are
for groups of different sizes that are packed one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Arrays = dict[str, Any]  # packed numpy arrays; under "counts" a dict of Python ints


@dataclass(frozen=True, eq=False)
class Text:
    """Framed rows."""

    ids_BL: Ints  # padded with the vocabulary's pad
    length_B: Ints  # tokens, specials included, padding excluded
    free_BL: Flags  # may become noise: neither special (nor an unknown word) nor padding
    start_BL: Flags  # the token starts a word; specials do, padding does not
    sentence_BL: NDArray[np.int16]  # number of the sentence in the row, -1 on the frame's specials and padding
    part_BL: NDArray[np.int8]  # segment: 0, or 1 for the second of a pair
    label_B: Ints | None = None  # of a pair
    rank_BL: NDArray[np.int32] | None = None  # attention mask: a place sees ranks up to its own; None: all
    annotated_BL: NDArray[np.uint8] | None = None  # 1 at the start of an annotator's span, 2 inside, else 0
    reused_B: Ints | None = None  # of the tokens read first, how many the next row of a stream does not read again
    reversed_B: Flags | None = None  # the row is read from its end to [CLS]; None: none is

    @cached_property
    def word_BL(self) -> NDArray[np.int16]:
        """Number of the word in the row, -1 on specials and padding; a row may begin within a word."""
        after_special = np.zeros_like(self.free_BL)
        after_special[:, 1:] = ~self.free_BL[:, :-1]
        begins = self.free_BL & (self.start_BL | after_special)
        number = np.cumsum(begins, axis=1, dtype=np.int16) - np.int16(1)
        number[~self.free_BL] = -1
        return number

    @property
    def read_at_BL(self) -> Ints:
        """int64 [B, L]: when each token is read by a network that reads [CLS] last, as XLNet does; padding and rows
        without a frame stay.
        """
        column_L, last_B1 = np.arange(self.ids_BL.shape[1]), self.length_B[:, None] - 1
        place_BL = np.where(column_L == 0, last_B1, column_L - 1)
        place_BL = np.where(self.sentence_BL[:, :1] < 0, place_BL, column_L)
        if self.reversed_B is not None:
            place_BL = np.where(self.reversed_B[:, None], last_B1 - column_L, place_BL)
        return np.where(column_L <= last_B1, place_BL, column_L)

    @property
    def later_BL(self) -> Flags:
        """bool [B, L]: the tokens after those that `reused_B` counts, if it is given: the second part of a row."""
        if self.reused_B is None:
            return np.zeros_like(self.free_BL)
        later_BL: Flags = self.read_at_BL >= self.reused_B[:, None]
        return later_BL

    def reorder(self, order_BL: Ints) -> Text:
        """The tokens in the order in which they are read: place i holds column `order_BL[:, i]`."""
        columns = {name: getattr(self, name) for name in ("ids_BL", "free_BL", "start_BL")}
        moved: dict[str, Any] = {name: np.take_along_axis(column, order_BL, 1) for name, column in columns.items()}
        return replace(self, **moved)

    def repeat(self, times: int) -> Text:
        """Each row `times` times, one after the other."""
        arrays: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        repeated = {name: np.repeat(array, times, axis=0) for name, array in arrays.items() if array is not None}
        return replace(self, **repeated)

    @property
    def tokens(self) -> int:
        """Tokens of the text: the frame's specials and padding left out."""
        return int(np.count_nonzero(self.sentence_BL >= 0))


@dataclass(frozen=True, eq=False)
class Marks:
    """Which tokens are noise, as span numbers. All noise is corrupted; less of it may be predicted."""

    span_BL: NDArray[np.int16]  # 0 kept, k = k-th noise span of the row
    insert_BL: NDArray[np.int16] | None = None  # blanks put before a place of what is read (spans without length)
    predicted_BL: Flags | None = None  # a part of the noise; None: all of it
    moved_P: Ints | None = None  # flat indices, ascending: not noise, but out of order and predicted
    order_BL: Ints | None = None  # column of the text read at each place; None: in its own order

    @cached_property
    def noise_P(self) -> Ints:
        """Flat indices into B x L of the noise, ascending."""
        return np.flatnonzero(self.span_BL)

    @cached_property
    def slot_P(self) -> Ints:
        """Flat indices into B x L of what is predicted, ascending."""
        return self.noise_P if self.predicted_BL is None else np.flatnonzero(self.predicted_BL)

    @property
    def spans(self) -> int:
        """Noise spans in all rows."""
        return int(self.span_BL.max(axis=1, initial=0).sum(dtype=np.int64))


class Sequences(NamedTuple):
    """Rows of a text-to-text view, each with its end-of-sequence token."""

    ids_BL: Ints  # padded with the vocabulary's pad
    length_B: Ints  # tokens, padding excluded
    place_BL: Ints | None = None  # column of the text that each token comes from


class Views(NamedTuple):
    """A corrupted batch: the original, its noise, what is read, what is written (None: predicted in place)."""

    text: Text
    marks: Marks
    inputs: Text | Sequences
    targets: Text | Sequences | None
    row_key_B: NDArray[np.uint64] | None = None  # of the noise of each row


def exclusive_cumsum(count_S: Ints) -> Ints:
    """The sum of all earlier counts: where each group starts."""
    return np.cumsum(count_S) - count_S


def number_within(count_S: Ints) -> Ints:
    """0, 1, ... within each group of these sizes, one group after the other."""
    return np.arange(count_S.sum()) - np.repeat(exclusive_cumsum(count_S), count_S)


def concatenate_ranges(start_S: Ints, length_S: Ints) -> Ints:
    """start, start + 1, ... of each range, one range after the other."""
    return np.repeat(start_S - exclusive_cumsum(length_S), length_S) + np.arange(length_S.sum())
