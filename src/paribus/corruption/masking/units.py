"""The free tokens of all rows packed together, and their units: words or single tokens.

F free tokens, U units, C candidates; a place is an index into the F packed tokens.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paribus.core.noise import Noise
from paribus.data.sequences import Flags, Ints, Marks, Text, exclusive_cumsum, number_within

FIELD: Final = 21  # bits of a place in a row, of a draw's number and of a row's number within one sort key
NEVER: Final = np.int32(np.iinfo(np.int32).max)  # the draw of a token that stays text


class Units(NamedTuple):
    """Free tokens without what is between them, so that frames and pairs do not matter."""

    slot_F: Ints  # flat index into B x L
    free_B: Ints  # free tokens of the row
    first_B: Ints  # place of its first
    unit_F: Ints  # number of the token's unit, counted over all rows
    start_U: Ints  # place of a unit's first token; one more entry, F, at the end
    until_B: Ints  # number of the unit behind the row's last

    @property
    def row_U(self) -> Ints:
        """The row of each unit."""
        return np.repeat(np.arange(len(self.until_B)), np.diff(self.until_B, prepend=0))


def find_units(text: Text, words: bool = True) -> Units:
    """The words of each row, or its single tokens; a row's first free token starts a unit."""
    slot_F, free_B = np.flatnonzero(text.free_BL), np.count_nonzero(text.free_BL, axis=1)
    first_B = exclusive_cumsum(free_B)
    if words:
        start_F = word_starts(text).reshape(-1)[slot_F]
        unit_F, start_U = np.cumsum(start_F) - 1, np.append(np.flatnonzero(start_F), len(slot_F))
    else:
        unit_F, start_U = np.arange(len(slot_F)), np.arange(len(slot_F) + 1)
    until_B = np.searchsorted(start_U, first_B + free_B)
    return Units(slot_F, free_B, first_B, unit_F, start_U, until_B)


def shuffle_units(text: Text, words: Units, noise: Noise) -> Ints:
    """int64 [U]: the units row by row, in random order within each.

    A unit's draw is that of its first token; equal draws (of 22 bits) keep the order of the text.
    """
    slot_U = words.slot_F[words.start_U[:-1]]
    bits_U = noise.bits("masking", text.ids_BL.shape[1]).reshape(-1)[slot_U] >> np.uint32(10)
    row_U = words.row_U
    first_U = np.append(0, words.until_B)[row_U]
    key_U = row_U << 2 * FIELD + 1 | bits_U.astype(np.int64) << FIELD | (np.arange(len(row_U)) - first_U)
    key_U.sort()
    order_U: Ints = (key_U & ((1 << FIELD) - 1)) + first_U
    return order_U


def take_earliest(drawn_F: NDArray[np.int32], free: Units, budget_B: Ints) -> Ints:
    """The `budget` places of each row that became noise first: by number of the draw, from left to right within one."""
    place_C = np.flatnonzero(drawn_F != NEVER)
    row_C = np.repeat(np.arange(len(free.free_B)), np.diff(np.searchsorted(place_C, free.first_B), append=len(place_C)))
    key_C = row_C << 2 * FIELD | drawn_F[place_C].astype(np.int64) << FIELD | (place_C - free.first_B[row_C])
    key_C.sort()
    count_B = np.bincount(row_C, minlength=len(free.free_B))
    kept_C = number_within(count_B) < np.repeat(budget_B, count_B)
    return (key_C & ((1 << FIELD) - 1))[kept_C] + free.first_B[row_C[kept_C]]


def word_starts(text: Text) -> Flags:
    """bool [B, L]: the free tokens that start a word or follow a special token, which separates words."""
    return find_begins(text.free_BL, text.start_BL)


def find_begins(marked_BL: Flags, also_BL: Flags | None = None) -> Flags:
    """bool [B, L]: the first place of each run of marked places, and the marked places of `also`."""
    begin_BL = marked_BL.copy()
    begin_BL[:, 1:] &= ~marked_BL[:, :-1]
    if also_BL is not None:
        begin_BL |= marked_BL & also_BL
    return begin_BL


def number_spans(chosen_BL: Flags, begin_BL: Flags) -> NDArray[np.int16]:
    """int16 [B, L]: 1, 2, ... for the spans of chosen tokens, which start at `begin`; 0 elsewhere."""
    span_BL: NDArray[np.int16] = np.cumsum(begin_BL, axis=1, dtype=np.int16)
    span_BL *= chosen_BL
    return span_BL


def mark_runs(chosen_BL: Flags) -> Marks:
    """Each run of chosen tokens as one span."""
    return Marks(number_spans(chosen_BL, find_begins(chosen_BL)))


def scatter_flags(flag_F: Flags, free: Units, text: Text) -> Flags:
    """bool [B, L]: flags of the free tokens at their places in the rows."""
    flag_BL = np.zeros(text.free_BL.shape, np.bool_)
    flag_BL.reshape(-1)[free.slot_F] = flag_F
    return flag_BL
