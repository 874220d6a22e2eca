"""n-grams of words.   ALBERT (arXiv 1909.11942), section 4.1; its `create_pretraining_data.py`"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paribus.core.noise import Noise
from paribus.core.settings import within
from paribus.corruption.masking.pattern import NoisePattern, bert_budget, check_at_least_one, check_cap
from paribus.corruption.masking.units import Units, find_units, number_spans, scatter_flags, shuffle_units
from paribus.data.sequences import Flags, Ints, Marks, Text, concatenate_ranges, number_within

_ROUND: Final = 64  # words of a row that one round visits at most


@dataclass(frozen=True)
class NGram(NoisePattern):
    """Noise over n-grams of whole words; each is its own span, and two may touch.

    The words of a row are visited in random order. Each starts an n-gram, n from 1..max_length with probability ~ 1/n
    (`favor_shorter=false`: the same probabilities in reverse), renormalized if the row has fewer words left. One that
    would exceed min(max_predictions, max(1, round(rate * length))) tokens is shortened word by word, otherwise skipped;
    one that covers a token of an earlier one is skipped too.
    Raises UserError for settings out of range.
    """

    max_length: int = 3
    favor_shorter: bool = True
    max_predictions: int | None = field(default=None, metadata=within(0, 10**18))
    semantics: ClassVar[int] = 2
    by_words: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_cap(self.max_predictions)
        check_at_least_one("max_length", self.max_length, "a whole number of words")

    def __call__(self, text: Text, noise: Noise) -> Marks:
        words = find_units(text)
        room_B = bert_budget(text, self.rate, self.max_predictions)
        order_U, row_U = shuffle_units(text, words, noise), words.row_U
        size_U, chosen_F = np.diff(words.start_U), np.zeros(len(words.slot_F), np.bool_)
        begin_F = chosen_F.copy()
        while len(order_U):
            visits = _next_visits(order_U, row_U, room_B)
            n_KR = self._draw_lengths(visits, words, noise, text.ids_BL.shape[1])
            start_P, stop_P = self._take_ngrams(visits, n_KR, words, room_B, chosen_F)
            chosen_F[concatenate_ranges(start_P, stop_P - start_P)] = begin_F[start_P] = True
            order_U = order_U[visits.left_U]
            order_U = order_U[(size_U[order_U] <= room_B[row_U[order_U]]) & ~chosen_F[words.start_U[order_U]]]
        return Marks(number_spans(*(scatter_flags(flag_F, words, text) for flag_F in (chosen_F, begin_F))))

    def _take_ngrams(
        self,
        visits: _Visits,
        n_KR: Ints,
        words: Units,
        room_B: Ints,
        chosen_F: Flags,
    ) -> tuple[Ints, Ints]:
        """Starts and stops, as places, of the n-grams of n words that the visits take; reduces the room in place.

        `chosen_F`: the places that earlier rounds have taken.
        """
        unit_KR, row_R = visits.unit_KR, visits.row_R
        before_F = np.append(0, np.cumsum(chosen_F))
        start_KR, room_R = words.start_U[unit_KR], room_B[row_R]
        stop_NKR = words.start_U[
            np.minimum(unit_KR + np.arange(1, self.max_length + 1)[:, None, None], words.until_B[row_R])
        ]
        stop_KR, across_R = np.zeros_like(start_KR), np.arange(len(row_R))
        for visit, start_R in enumerate(start_KR):
            stop_NR = stop_NKR[:, visit]
            n_R = np.minimum(n_KR[visit], np.count_nonzero(stop_NR - start_R <= room_R, axis=0))
            stop_R = stop_NR[n_R - 1, across_R]
            meets_R = ((start_KR[:visit] < stop_R) & (stop_KR[:visit] > start_R)).any(axis=0)
            meets_R |= before_F[stop_R] > before_F[start_R]
            taken_R = (n_R > 0) & ~meets_R & visits.valid_KR[visit]
            np.copyto(stop_KR[visit], stop_R, where=taken_R)  # 0 where skipped: it ends before any place
            room_R = room_R - (stop_R - start_R) * taken_R
        room_B[row_R] = room_R
        return start_KR[stop_KR > 0], stop_KR[stop_KR > 0]

    def _draw_lengths(self, visits: _Visits, words: Units, noise: Noise, width: int) -> Ints:
        """int64 [K, R]: the n of each visit, at most the words left in the row."""
        unit_KR, row_R = visits.unit_KR, visits.row_R
        bits_KR = noise.at("n-gram length", row_R, words.slot_F[words.start_U[unit_KR]] % width)
        possible_KR = np.minimum(words.until_B[row_R] - unit_KR, self.max_length)
        bound_NN = np.rint(np.cumsum(self.shares(), axis=1) * 2**32)
        n_KR: Ints = 1 + np.count_nonzero(bits_KR[..., None] >= bound_NN[possible_KR - 1], axis=-1)
        return n_KR

    def shares(self) -> NDArray[np.float64]:
        """[N, N]: row a - 1 has the probabilities of n = 1..N if a words are left; they are 0 above a."""
        weight_N = 1 / np.arange(1, self.max_length + 1)
        weight_NN = np.tril(np.tile(weight_N if self.favor_shorter else weight_N[::-1], (self.max_length, 1)))
        share_NN: NDArray[np.float64] = weight_NN / weight_NN.sum(axis=1, keepdims=True)
        return share_NN


class _Visits(NamedTuple):
    """The next words of each row in its order."""

    unit_KR: Ints
    valid_KR: Flags  # a row may have fewer
    row_R: Ints  # rows that have words
    left_U: Flags  # words of the order that are not visited


def _next_visits(order_U: Ints, row_U: Ints, room_B: Ints) -> _Visits:
    """The first words of each row of an order that goes row by row, at most as many as the row with most room needs."""
    most = int(np.clip(room_B[row_U[order_U]].max(), 1, _ROUND))
    row_R, first_R, count_R = np.unique(row_U[order_U], return_index=True, return_counts=True)
    visit_K = np.arange(most)[:, None]
    unit_KR = order_U[np.minimum(first_R + visit_K, first_R + count_R - 1)]
    return _Visits(unit_KR, visit_K < count_R, row_R, number_within(count_R) >= most)
