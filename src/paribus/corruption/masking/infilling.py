"""Spans of Poisson length.   BART (arXiv 1910.13461), section 2.2 (text infilling); fairseq's `denoising_dataset.py`"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.core.noise import Noise
from paribus.corruption.masking.pattern import NoiseCounts, NoisePattern, check_choice, check_share, spanbert_budget
from paribus.corruption.masking.single_tokens import choose_lowest
from paribus.corruption.masking.units import Units, find_units, number_spans, scatter_flags
from paribus.corruption.masking.whole_row import permute_sentences
from paribus.data.sequences import Ints, Marks, Text, exclusive_cumsum, number_within

_TAIL: Final = 64  # lengths above the mean that a draw can give


@dataclass(frozen=True)
class Infilling(NoisePattern):
    """Lengths are drawn from Poisson(mean_length) until they reach ceil(rate * words); the last one is cut.

    Each span starts at a different word and covers `length` whole words, or those up to the row's end; overlapping
    spans are one, so that less than the budget is noise. With `exact` spans do not overlap and all of the budget is
    noise. Spans of length 0 are blanks at random positions.
    permute_sentences: share of sentences to permute first.
    Raises UserError for settings out of range.
    """

    mean_length: float = 3.0
    exact: bool = False
    unit: str = "word"
    permute_sentences: float = 0.0
    inserts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("unit", self.unit, ("word", "token"))
        check_share("masking.permute_sentences", self.permute_sentences)
        if not isinstance(self.mean_length, int | float) or not 0 < self.mean_length < 100:
            raise UserError(
                f"masking.mean_length={self.mean_length} is out of range",
                "give a number of words, above 0 and below 100",
            )

    @property
    def by_words(self) -> bool:
        return self.unit == "word"

    @property
    def reorders(self) -> bool:
        return self.permute_sentences > 0

    @property
    def row_name(self) -> str:
        """Such as infilling_3.5_30."""
        return f"infilling_{self.mean_length:g}_{100 * self.rate:g}" + ("_sentences" if self.reorders else "")

    def check(self, length: int) -> None:
        """Raise UserError if the noise of `length` tokens is shorter than one mean span."""
        if math.ceil(self.rate * length) < self.mean_length:
            raise UserError(
                f"masking.mean_length={self.mean_length:g} is longer than the noise of {length} tokens",
                "shorten the spans, or raise masking.rate or input.length",
            )

    def counts(self, raw: int) -> NoiseCounts:
        """Means, overlaps left out."""
        return NoiseCounts(self.rate * raw, self.rate * raw / self.mean_length)

    def __call__(self, text: Text, noise: Noise) -> Marks:
        order_BL = permute_sentences(text, noise, self.permute_sentences) if self.reorders else None
        read = text if order_BL is None else text.reorder(order_BL)
        words = find_units(read, self.by_words)
        begin_S, end_S, blanks_B = self._draw_spans(words, noise)
        span_BL = _mark_spans(begin_S, end_S, words, read)
        insert_BE = _place_blanks(span_BL, blanks_B, read, noise)
        if order_BL is not None:
            there_BL = span_BL
            span_BL = np.zeros_like(there_BL)
            np.put_along_axis(span_BL, order_BL, there_BL, 1)
        return Marks(span_BL, insert_BE, order_BL=order_BL)

    def _draw_spans(self, words: Units, noise: Noise) -> tuple[Ints, Ints, Ints]:
        """The words at which the spans of all rows begin and end, and how many blanks each row has."""
        words_B = np.diff(words.until_B, prepend=0)
        length_BK = draw_lengths(spanbert_budget(words_B, self.rate), self.mean_length, noise)
        count_B = np.count_nonzero(length_BK > 0, axis=1)
        row_S = np.repeat(np.arange(len(words_B)), count_B)
        # the last length of a row was cut, so they go to the spans in random order
        order_S = np.lexsort((noise.at("span order", row_S, number_within(count_B)), row_S))
        size_S = length_BK[length_BK > 0][order_S]
        noise_B = np.bincount(row_S, size_S, len(words_B)).astype(np.int64)
        places_B = words_B - noise_B + count_B if self.exact else words_B
        width = int(places_B.max(initial=1))
        flag_BW = choose_lowest(noise.bits("span place", width), np.arange(width) < places_B[:, None], count_B)
        start_S = np.nonzero(flag_BW)[1]
        if self.exact:  # each span took one place: add the rest of the spans before it
            start_S += exclusive_cumsum(size_S - 1) - np.repeat(exclusive_cumsum(noise_B - count_B), count_B)
        begin_S = (words.until_B - words_B)[row_S] + start_S
        return begin_S, np.minimum(begin_S + size_S, words.until_B[row_S]), np.sum(length_BK == 0, axis=1)


def draw_lengths(budget_B: Ints, mean: float, noise: Noise) -> Ints:
    """int64 [B, K]: Poisson lengths until their sum reaches the budget, the last one cut; -1 after it."""
    bound_K = poisson_bounds(mean)
    draws = 4
    length_BK = total_BK = np.zeros((len(budget_B), 1), np.int64)
    while (total_BK[:, -1] < budget_B).any():
        draws *= 2
        length_BK = np.searchsorted(bound_K, noise.bits("span length", draws), side="right")
        total_BK = np.cumsum(length_BK, axis=1)
    done_BK = total_BK - length_BK >= budget_B[:, None]
    cut_BK: Ints = np.minimum(length_BK, budget_B[:, None] - (total_BK - length_BK))
    cut_BK[done_BK] = -1
    return cut_BK


def poisson_bounds(mean: float) -> NDArray[np.float64]:
    """The draws of 32 bits at which the lengths 1, 2, ... begin."""
    most = math.ceil(mean) + _TAIL
    log_K = np.arange(most) * math.log(mean) - mean - np.array([math.lgamma(k + 1) for k in range(most)])
    bound_K: NDArray[np.float64] = np.rint(np.cumsum(np.exp(log_K)) * 2**32)
    return bound_K


def _mark_spans(begin_S: Ints, end_S: Ints, words: Units, text: Text) -> NDArray[np.int16]:
    """Span numbers; overlapping spans are one, adjacent ones are not."""
    depth_U = np.zeros(len(words.start_U), np.int64)
    depth_U[begin_S] += 1
    np.subtract.at(depth_U, end_S, 1)
    depth_U = np.cumsum(depth_U)
    leads_S = begin_S[depth_U[begin_S] == 1]
    begin_F = np.zeros(len(words.slot_F), np.bool_)
    begin_F[words.start_U[leads_S]] = True
    return number_spans(scatter_flags(depth_U[words.unit_F] > 0, words, text), scatter_flags(begin_F, words, text))


def _place_blanks(span_BL: NDArray[np.int16], blanks_B: Ints, text: Text, noise: Noise) -> NDArray[np.int16]:
    """int16 [B, L + 1]: blanks before each place that is read, all ways to place them equally likely.

    There are at most as many as the spans save tokens, so that a row never grows.
    """
    rows, width = span_BL.shape
    lead_BL = (span_BL > 0) & (np.diff(span_BL, axis=1, prepend=np.int16(0)) != 0)
    read_BL = ((span_BL == 0) & (np.arange(width) < text.length_B[:, None])) | lead_BL
    read_B = np.count_nonzero(read_BL, axis=1)
    blanks_B = np.minimum(blanks_B, text.length_B - read_B)
    slots = max(int((read_B + blanks_B).max(initial=1)), 1)
    flag_BW = choose_lowest(noise.bits("blanks", slots), np.arange(slots) < (read_B + blanks_B)[:, None], blanks_B)
    row_S, slot_S = np.nonzero(flag_BW)
    gap_S = slot_S - number_within(np.bincount(row_S))  # places of the row that are read before the blank
    column_F = np.append(np.nonzero(read_BL)[1], width)
    next_S = np.minimum(exclusive_cumsum(read_B)[row_S] + gap_S, len(column_F) - 1)
    place_S = np.where(gap_S == read_B[row_S], text.length_B[row_S], column_F[next_S])
    insert_BE = np.zeros((rows, width + 1), np.int16)
    np.add.at(insert_BE, (row_S, place_S), np.int16(1))
    return insert_BE
