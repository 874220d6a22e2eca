"""Single tokens, each as likely as any other.   BERT (arXiv 1810.04805), section 3.1; RoBERTa, section 4.1"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from paribus.core.noise import Noise, below
from paribus.corruption.masking.budget import bert_budget, check_cap, check_choice, check_rates, check_rounding
from paribus.data.schedule import Dynamic, Schedule
from paribus.data.text import Marks, Text

_POSITION_BITS: Final = np.uint32(11)  # of a sort key; the 21 above are random


@dataclass(frozen=True)
class Bernoulli:
    """Noise over single free tokens; each is its own span.

    budget: `exact` predicts min(max_predictions, max(1, round(rate * length))) tokens of a row, specials counted in its
    length and halves rounded to even, as BERT does (never more than are free); `bernoulli` draws each free token by
    itself, so that counts vary.
    Raises UserError for a rate outside (0, 1), an unknown budget or a cap below 1.
    """

    rate: float
    budget: str = "exact"
    max_predictions: int | None = None
    predict: float | None = None
    schedule: Schedule = field(default_factory=Dynamic)
    semantics: ClassVar[int] = 1
    unset_values: ClassVar[Mapping[str, Any]] = {"predict": None}  # all noise is predicted
    by_words: ClassVar[bool] = False
    spans: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_rates(self.rate, self.predict)
        check_choice("budget", self.budget, ("exact", "bernoulli"))
        check_cap(self.max_predictions)

    def check(self, length: int) -> None:
        """Raise UserError where a full row of `length` tokens rounds to no prediction."""
        check_rounding(self.rate, self.predict, length)

    def __call__(self, text: Text, noise: Noise) -> Marks:
        bits_BL = noise.bits("masking", text.ids_BL.shape[1])
        if self.budget == "bernoulli":
            return Marks(number_each((bits_BL < below(self.rate)) & text.free_BL))
        return Marks(number_each(lowest(bits_BL, text.free_BL, self.counts(text))))

    def counts(self, text: Text) -> NDArray[np.int64]:
        """Predictions of each row under the exact budget."""
        return bert_budget(text, self.rate, self.max_predictions)


def lowest(bits_BL: NDArray[np.uint32], free_BL: NDArray[np.bool_], count_B: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the `count` free positions of each row that drew lowest: a uniform choice without replacement.

    The low bits of a draw give way to its position, so that no two are equal; rows longer than these bits can number
    compare the same two numbers in 64 bits. The choice in a row does not depend on the padding behind it.
    """
    key_BL = _sort_keys(bits_BL)
    key_BL[~free_BL] = np.iinfo(key_BL.dtype).max
    order_BL = np.sort(key_BL, axis=1)
    bound_B = order_BL[np.arange(len(order_BL)), np.maximum(count_B, 1) - 1]
    chosen_BL: NDArray[np.bool_] = (key_BL <= bound_B[:, None]) & free_BL
    chosen_BL[count_B == 0] = False
    return chosen_BL


def _sort_keys(bits_BL: NDArray[np.uint32]) -> NDArray[np.uint32] | NDArray[np.uint64]:
    random_BL = bits_BL & ~np.uint32((1 << int(_POSITION_BITS)) - 1)
    length = bits_BL.shape[1]
    if length <= 1 << int(_POSITION_BITS):
        random_BL |= np.arange(length, dtype=np.uint32)
        return random_BL
    return random_BL.astype(np.uint64) << np.uint64(32) | np.arange(length, dtype=np.uint64)


def number_each(chosen_BL: NDArray[np.bool_]) -> NDArray[np.int16]:
    """Span numbers for chosen tokens that are each a span of one: 1, 2, ... from left to right."""
    slot_P = np.flatnonzero(chosen_BL)
    count_B = np.count_nonzero(chosen_BL, axis=1)
    number_P = np.arange(1, len(slot_P) + 1) - np.repeat(np.cumsum(count_B) - count_B, count_B)
    span_BL = np.zeros(chosen_BL.shape, np.int16)
    span_BL.reshape(-1)[slot_P] = number_P
    return span_BL
