"""Noise over single tokens: BERT's exact budget, T5's independent draws, BART's deletion."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from paribus.core.noise import Noise, below
from paribus.core.settings import within
from paribus.corruption.masking.pattern import NoisePattern, bert_budget, check_cap, check_choice, spanbert_budget
from paribus.corruption.masking.units import mark_runs
from paribus.data.sequences import Flags, Ints, Marks, Text, number_within

POSITION_BITS: Final = 11  # of a sort key; the 21 above are random


@dataclass(frozen=True)
class Bernoulli(NoisePattern):
    """Single free tokens, each its own span.   BERT (arXiv 1810.04805), section 3.1; RoBERTa, section 4.1

    budget: `exact` predicts min(max_predictions, max(1, round(rate * length))) tokens of a row, as BERT does (special
    tokens count in the length, halves round to even, never more than are free); `bernoulli` draws each free token
    independently, so that counts vary.
    Raises UserError for an unknown budget or a cap below 1.
    """

    budget: str = "exact"
    max_predictions: int | None = field(default=None, metadata=within(0, 10**18))
    spans: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("budget", self.budget, ("exact", "bernoulli"))
        check_cap(self.max_predictions)

    def __call__(self, text: Text, noise: Noise) -> Marks:
        bits_BL = noise.bits("masking", text.ids_BL.shape[1])
        if self.budget == "bernoulli":
            return Marks(number_each((bits_BL < below(self.rate)) & text.free_BL))
        return Marks(number_each(choose_lowest(bits_BL, text.free_BL, self.exact_budget(text))))

    def exact_budget(self, text: Text) -> Ints:
        """int64 [B]: predictions of each row under the exact budget."""
        return bert_budget(text, self.rate, self.max_predictions)


@dataclass(frozen=True)
class Iid(NoisePattern):
    """Each free token is noise with probability `rate`; adjacent noise tokens are one span.

    Counts vary from row to row, and a row may have none.   T5 (arXiv 1910.10683), section 3.1.4; `iid_noise_mask`
    """

    def __call__(self, text: Text, noise: Noise) -> Marks:
        bits_BL = noise.bits("masking", text.ids_BL.shape[1])
        return mark_runs((bits_BL < below(self.rate)) & text.free_BL)


@dataclass(frozen=True)
class Deletion(NoisePattern):
    """ceil(rate * length) free tokens of a row, all equally likely; adjacent ones are one span.

    BART (arXiv 1910.13461), section 2.2; fairseq's `denoising_dataset.py`
    """

    rounds_up: ClassVar[bool] = True

    def __call__(self, text: Text, noise: Noise) -> Marks:
        wanted_B = spanbert_budget(np.count_nonzero(text.free_BL, axis=1), self.rate)
        bits_BL = noise.bits("masking", text.ids_BL.shape[1])
        return mark_runs(choose_lowest(bits_BL, text.free_BL, wanted_B))


def choose_lowest(bits_BL: NDArray[np.uint32], free_BL: Flags, count_B: Ints) -> Flags:
    """bool [B, L]: the `count` free positions of each row with the lowest draws, a uniform choice without replacement.

    The low bits of a draw are replaced by its position, so that no two are equal; rows too long for these bits compare
    the same two numbers in 64 bits. The choice in a row does not depend on the padding behind it.
    """
    length = bits_BL.shape[1]
    key_BL: NDArray[np.uint32] | NDArray[np.uint64] = bits_BL & ~np.uint32((1 << POSITION_BITS) - 1)
    if length <= 1 << POSITION_BITS:
        key_BL |= np.arange(length, dtype=np.uint32)
    else:
        key_BL = key_BL.astype(np.uint64) << np.uint64(32) | np.arange(length, dtype=np.uint64)
    key_BL[~free_BL] = np.iinfo(key_BL.dtype).max
    order_BL = np.sort(key_BL, axis=1)
    bound_B = order_BL[np.arange(len(order_BL)), np.maximum(count_B, 1) - 1]
    chosen_BL: Flags = (key_BL <= bound_B[:, None]) & free_BL
    chosen_BL[count_B == 0] = False
    return chosen_BL


def number_each(chosen_BL: Flags) -> NDArray[np.int16]:
    """int16 [B, L]: span numbers 1, 2, ... from left to right of chosen tokens that are each a span."""
    slot_P = np.flatnonzero(chosen_BL)
    span_BL = np.zeros(chosen_BL.shape, np.int16)
    span_BL.reshape(-1)[slot_P] = 1 + number_within(np.count_nonzero(chosen_BL, axis=1))
    return span_BL
