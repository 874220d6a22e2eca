"""Contiguous spans of geometric length.   SpanBERT (arXiv 1907.10529), section 3.1; its `masking.py`"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.core.noise import Noise, integers
from paribus.corruption.masking.pattern import NoisePattern, check_at_least_one, check_choice, spanbert_budget
from paribus.corruption.masking.units import NEVER, find_units, mark_runs, take_earliest
from paribus.data.sequences import Marks, Text, concatenate_ranges

_ROUND: Final = 64  # draws of one round at most


@dataclass(frozen=True)
class GeometricSpan(NoisePattern):
    """Spans of words (`unit=word`) or of tokens (`unit=token`) until ceil(rate * free tokens) of a row are noise.

    A draw is a length, from the geometric distribution of mean `mean_length` cut to 1..`max_length` and renormalized,
    and an anchor, uniform over the row's free tokens. A draw whose anchor is noise already is dropped. The span starts
    with the anchor's unit and ends after `length` units, at the row's end or with the budget, which may cut a word.
    Adjacent or overlapping spans are one unless a special token is between.
    Raises UserError for settings out of range.
    """

    mean_length: float = 5.0
    max_length: int = 10
    unit: str = "word"
    rounds_up: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("unit", self.unit, ("word", "token"))
        check_at_least_one("max_length", self.max_length, "a whole number of units")
        if not isinstance(self.mean_length, int | float) or not 1 <= self.mean_length < np.inf:
            raise UserError(
                f"masking.mean_length={self.mean_length} is out of range", "give a number of units, at least 1"
            )

    @property
    def by_words(self) -> bool:
        return self.unit == "word"

    def __call__(self, text: Text, noise: Noise) -> Marks:
        free = find_units(text, self.by_words)
        budget_B = spanbert_budget(free.free_B, self.rate)
        weight_K = geometric(self.mean_length, self.max_length)
        bound_K = np.rint(np.cumsum(weight_K) * 2**32)[:-1]
        # draws that most rows need; their number changes nothing: a draw depends only on earlier draws of its row
        span = weight_K @ np.arange(1, self.max_length + 1) * max(len(free.slot_F), 1) / max(len(free.start_U) - 1, 1)
        needed = -np.log1p(-self.rate) * free.free_B.max(initial=1) / span
        row_R, first, size = np.flatnonzero(budget_B), 0, int(np.clip(np.ceil(1.2 * needed + 4), 4, _ROUND))
        drawn_F = np.full(len(free.slot_F), NEVER, np.int32)  # the number of the draw that made each token noise
        while len(row_R):  # until every budget is reached
            # anchor, start and stop [K, R] of these draws of these rows, as places
            draw_K = np.arange(first, first + size)
            bits_KR = noise.at("anchor", row_R, draw_K[:, None])
            anchor_KR = free.first_B[row_R] + integers(bits_KR, free.free_B[row_R])
            length_KR = 1 + np.searchsorted(bound_K, noise.at("span length", row_R, draw_K[:, None]), side="right")
            unit_KR = free.unit_F[anchor_KR]
            start_KR = free.start_U[unit_KR]
            stop_KR = free.start_U[np.minimum(unit_KR + length_KR, free.until_B[row_R])]
            np.copyto(stop_KR, start_KR, where=drawn_F[anchor_KR] != NEVER)
            # empty the spans whose anchor an earlier span of the same row covers
            for draw in range(1, len(anchor_KR)):
                anchor_R = anchor_KR[draw]
                covered_R = ((start_KR[:draw] <= anchor_R) & (anchor_R < stop_KR[:draw])).any(axis=0)
                np.copyto(stop_KR[draw], start_KR[draw], where=covered_R)
            # write the number of the earliest draw that covers a token, unless it has one
            length_P = (stop_KR - start_KR)[::-1].reshape(-1)
            place_Q = concatenate_ranges(start_KR[::-1].reshape(-1), length_P)
            draw_P = np.repeat(np.arange(first + size - 1, first - 1, -1), len(row_R))
            draw_Q = np.repeat(draw_P, length_P)
            if first:
                new_Q = drawn_F[place_Q] == NEVER
                place_Q, draw_Q = place_Q[new_Q], draw_Q[new_Q]
            drawn_F[place_Q] = draw_Q  # of equal places the last is kept: the earliest draw
            done_F = np.append(0, np.cumsum(drawn_F != NEVER))
            done_R = done_F[(free.first_B + free.free_B)[row_R]] - done_F[free.first_B[row_R]]
            row_R, first, size = row_R[done_R < budget_B[row_R]], first + size, min(2 * size, _ROUND)
        noisy_N = take_earliest(drawn_F, free, budget_B)
        chosen_BL = np.zeros(text.free_BL.shape, np.bool_)
        chosen_BL.reshape(-1)[free.slot_F[noisy_N]] = True
        return mark_runs(chosen_BL)


def geometric(mean: float, longest: int) -> NDArray[np.float64]:
    """Probabilities of the lengths 1..longest under the geometric distribution of this mean, renormalized."""
    weight_K = (1 - 1 / mean) ** np.arange(longest)
    share_K: NDArray[np.float64] = weight_K / weight_K.sum()
    return share_K
