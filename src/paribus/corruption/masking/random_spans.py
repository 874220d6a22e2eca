"""Spans at random positions that never touch.   T5 (arXiv 1910.10683), section 3.3.4; its `random_spans_noise_mask`"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from paribus.core.errors import UserError
from paribus.core.noise import Noise
from paribus.corruption.masking.pattern import NoiseCounts, NoisePattern
from paribus.corruption.masking.single_tokens import choose_lowest
from paribus.data.sequences import Array, Ints, Marks, Text, concatenate_ranges, exclusive_cumsum, number_within


@dataclass(frozen=True)
class RandomSpans(NoisePattern):
    """round(rate * length) noise tokens of a row in round(noise / mean_length) spans, at least one of each.

    The noise and the text are each cut into that many parts, all ways equally likely, and alternate, text first: a row
    starts with text, ends with noise, and no two spans touch. Halves round to even.
    Raises UserError for settings out of range.
    """

    mean_length: float = 3.0
    fixed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.mean_length, int | float) or not 1 <= self.mean_length < np.inf:
            raise UserError(
                f"masking.mean_length={self.mean_length} is out of range", "give a number of tokens, at least 1"
            )

    @property
    def row_name(self) -> str:
        """Such as span_3_15."""
        return f"span_{self.mean_length:g}_{100 * self.rate:g}"

    def check(self, length: int) -> None:
        """Raise UserError if the noise of `length` tokens is shorter than one mean span."""
        noise = round(length * self.rate)
        if noise < self.mean_length:
            raise UserError(
                f"masking.mean_length={self.mean_length:g} is longer than the noise, {noise} of {length} tokens",
                "shorten the spans, or raise masking.rate or input.length",
            )

    def counts(self, raw: int) -> NoiseCounts:
        noise_B, spans_B = self._budget(np.array([raw]))
        return NoiseCounts(int(noise_B[0]), int(spans_B[0]))

    def _budget(self, length_B: Ints) -> tuple[Ints, Ints]:
        """(noise tokens, spans) of rows with these free tokens; 0 if fewer than two tokens are free."""
        noise_B = np.clip(np.rint(length_B * self.rate), 1, np.maximum(length_B - 1, 1))
        spans_B = np.clip(np.rint(noise_B / self.mean_length), 1, np.minimum(noise_B, length_B - noise_B))
        possible_B = length_B >= 2
        return (noise_B * possible_B).astype(np.int64), (spans_B * possible_B).astype(np.int64)

    def __call__(self, text: Text, noise: Noise) -> Marks:
        free_B = np.count_nonzero(text.free_BL, axis=1)
        noise_B, spans_B = self._budget(free_B)
        used_B = np.where(spans_B > 0, free_B, 0)
        noise_S = _cut_totals(noise_B, spans_B, noise, "noise cuts")
        text_S = _cut_totals(used_B - noise_B, spans_B, noise, "text cuts")
        first_S = np.cumsum(text_S + noise_S) - noise_S
        if (used_B != free_B).any():
            first_S += np.repeat(exclusive_cumsum(free_B) - exclusive_cumsum(used_B), spans_B)
        number_S = 1 + number_within(spans_B)
        place_P = concatenate_ranges(first_S, noise_S)
        span_BL = np.zeros(text.free_BL.shape, np.int16)
        slot_P = place_P if text.free_BL.all() else np.flatnonzero(text.free_BL)[place_P]
        span_BL.reshape(-1)[slot_P] = np.repeat(number_S.astype(np.int16), noise_S)
        return Marks(span_BL)


def _cut_totals(total_B: Ints, parts_B: Ints, noise: Noise, stream: str) -> Ints:
    """All parts, row by row: each total cut into that many parts of at least 1, all ways equally likely."""
    width = max(int(total_B.max(initial=0)), 2)
    place_W = np.arange(width)
    flag_BW: Array = np.ones((len(total_B), width), np.bool_)
    inner_BW = place_W[1:] < total_B[:, None]
    flag_BW[:, 1:] = choose_lowest(noise.bits(stream, width - 1), inner_BW, parts_B - 1)
    flag_F = flag_BW.reshape(-1) if (total_B == width).all() else flag_BW[place_W < total_B[:, None]]
    return np.diff(np.flatnonzero(flag_F), append=len(flag_F))
