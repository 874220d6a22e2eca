"""Whole words.   BERT's `create_pretraining_data.py` (--do_whole_word_mask); fairseq's `mask_tokens_dataset.py`"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from paribus.core.noise import Noise
from paribus.core.settings import within
from paribus.corruption.masking.pattern import NoisePattern, bert_budget, check_cap, check_choice
from paribus.corruption.masking.single_tokens import choose_lowest
from paribus.corruption.masking.units import Units, find_units, number_spans, shuffle_units, word_starts
from paribus.data.sequences import Flags, Ints, Marks, Text


@dataclass(frozen=True)
class WholeWord(NoisePattern):
    """Noise over whole words; each is its own span.

    budget: `exact` takes the words of a row in random order and skips a word that would exceed
    min(max_predictions, max(1, round(rate * length))) tokens, special tokens counted in the length (BERT), so that a
    row falls short only if no word fits; `words` takes floor(rate * words + u) words, u uniform in [0, 1) (fairseq).
    Raises UserError for an unknown budget or a cap below 1.
    """

    budget: str = "exact"
    max_predictions: int | None = field(default=None, metadata=within(0, 10**18))
    by_words: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("budget", self.budget, ("exact", "words"))
        check_cap(self.max_predictions)

    def __call__(self, text: Text, noise: Noise) -> Marks:
        if self.budget == "words":
            start_BL, uniform_B = word_starts(text), noise.bits("budget", 1)[:, 0] / 2**32
            count_B = (self.rate * np.count_nonzero(start_BL, axis=1) + uniform_B).astype(np.int64)
            if self.max_predictions is not None:
                count_B = np.minimum(count_B, self.max_predictions)
            chosen_BL = choose_lowest(noise.bits("masking", start_BL.shape[1]), start_BL, count_B)
            words = find_units(text)
            return mark_words(text, words, chosen_BL.reshape(-1)[words.slot_F[words.start_U[:-1]]])
        words, budget_B = find_units(text), bert_budget(text, self.rate, self.max_predictions)
        return mark_words(text, words, take_words(shuffle_units(text, words, noise), words, budget_B))


def take_words(order_U: Ints, words: Units, budget_B: Ints) -> Flags:
    """bool [U]: the words taken in this order (row by row), each unless it would exceed the rest of the budget.

    A pass takes all words up to the first that does not fit and keeps only words that still can, so few passes suffice.
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


def mark_words(text: Text, words: Units, taken_U: Flags) -> Marks:
    """Each word that is taken as a span."""
    chosen_BL, first_BL = np.zeros((2, *text.free_BL.shape), np.bool_)
    chosen_BL.reshape(-1)[words.slot_F] = taken_U[words.unit_F]
    first_BL.reshape(-1)[words.slot_F[words.start_U[:-1][taken_U]]] = True
    return Marks(number_spans(chosen_BL, first_BL))
