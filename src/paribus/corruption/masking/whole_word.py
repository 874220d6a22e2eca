"""Whole words.   BERT's `create_pretraining_data.py` (--do_whole_word_mask); fairseq's `mask_tokens_dataset.py`"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from paribus.core.noise import Noise
from paribus.corruption.masking.bernoulli import lowest
from paribus.corruption.masking.budget import bert_budget, check_cap, check_choice, check_rates, check_rounding
from paribus.corruption.masking.units import Units, number, shuffled, units, word_starts
from paribus.data.schedule import Dynamic, Schedule
from paribus.data.text import Marks, Text


@dataclass(frozen=True)
class WholeWord:
    """Noise over whole words; each is its own span.

    budget: `exact` takes the words of a row in random order and skips one that would pass
    min(max_predictions, max(1, round(rate * length))) tokens, specials counted in the length (BERT), so that a row
    falls short only where no word fits; `words` takes floor(rate * words + u) words, u uniform in [0, 1) (fairseq).
    Raises UserError for a rate outside (0, 1), an unknown budget or a cap below 1.
    """

    rate: float
    budget: str = "exact"
    max_predictions: int | None = None
    predict: float | None = None
    schedule: Schedule = field(default_factory=Dynamic)
    semantics: ClassVar[int] = 1
    by_words: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_rates(self.rate, self.predict)
        check_choice("budget", self.budget, ("exact", "words"))
        check_cap(self.max_predictions)

    def check(self, length: int) -> None:
        """Raise UserError where a full row of `length` tokens rounds to no prediction."""
        check_rounding(self.rate, self.predict, length)

    def __call__(self, text: Text, noise: Noise) -> Marks:
        if self.budget == "words":
            start_BL = word_starts(text)
            chosen_BL = lowest(noise.bits("masking", start_BL.shape[1]), start_BL, self._words(start_BL, noise))
            words = units(text)
            return whole(text, words, chosen_BL.reshape(-1)[words.slot_F[words.start_U[:-1]]])
        words = units(text)
        return whole(text, words, walk(shuffled(text, words, noise), words, self.counts(text)))

    def counts(self, text: Text) -> NDArray[np.int64]:
        """Tokens of each row that the exact budget allows."""
        return bert_budget(text, self.rate, self.max_predictions)

    def _words(self, start_BL: NDArray[np.bool_], noise: Noise) -> NDArray[np.int64]:
        uniform_B = noise.bits("budget", 1)[:, 0] / 2**32
        count_B: NDArray[np.int64] = (self.rate * np.count_nonzero(start_BL, axis=1) + uniform_B).astype(np.int64)
        return count_B if self.max_predictions is None else np.minimum(count_B, self.max_predictions)


def walk(order_U: NDArray[np.int64], words: Units, budget_B: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool [U]: the words taken in this order (row by row), each unless it would pass what is left of the budget.

    A pass takes what fits up to the first word that does not, and leaves only words that still can: few are needed.
    """
    taken_U, room_B = np.zeros(len(order_U), np.bool_), budget_B.copy()
    size_U = np.diff(words.start_U)
    while len(order_U):
        size_W, row_W = size_U[order_U], words.row_U[order_U]
        total_W = np.cumsum(size_W)
        before_B = np.append(0, total_W)[np.searchsorted(row_W, np.arange(len(room_B)))]
        fits_W = total_W <= (room_B + before_B)[row_W]
        taken_U[order_U[fits_W]] = True
        room_B -= np.bincount(row_W[fits_W], size_W[fits_W], len(room_B)).astype(np.int64)
        order_U = order_U[~fits_W & (size_W <= room_B[row_W])]
    return taken_U


def whole(text: Text, words: Units, taken_U: NDArray[np.bool_]) -> Marks:
    """The words that are taken as a span each."""
    chosen_BL, first_BL = np.zeros((2, *text.free_BL.shape), np.bool_)
    chosen_BL.reshape(-1)[words.slot_F] = taken_U[words.unit_F]
    first_BL.reshape(-1)[words.slot_F[words.start_U[:-1][taken_U]]] = True
    return Marks(number(chosen_BL, first_BL))
