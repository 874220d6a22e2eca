"""Spans that an annotator finds in the text, and words.   SpanBERT (arXiv 1907.10529), section 6.1: entities, phrases

ERNIE (arXiv 1904.09223), section 3.2, masks phrases and entities whole as well; `share` 1 takes them before any word.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.core.noise import Noise
from paribus.corruption.masking.pattern import NoisePattern, spanbert_budget
from paribus.corruption.masking.units import (
    FIELD,
    NEVER,
    find_begins,
    find_units,
    mark_runs,
    shuffle_units,
    take_earliest,
)
from paribus.data.annotators import Annotator
from paribus.data.sequences import Marks, Text

_MOST: Final = 1 << 12  # words between two spans, at most: more than a row holds


@dataclass(frozen=True)
class AnnotatedSpan(NoisePattern):
    """Annotated spans and single words until ceil(rate * free tokens) of a row are noise.

    Each draw takes, with probability `share`, one of the row's remaining annotated spans, otherwise one of its words,
    all equally likely; tokens that are noise already stay noise. Once the spans are used up, all draws take words. The
    budget may cut the last draw. Adjacent noise is one span unless a special token is between. A span holds the whole
    words that the annotator's characters touch; the part of a span that the edge of a row leaves is a span too.
    Raises UserError for a share outside (0, 1].
    """

    annotator: Annotator
    share: float = 0.5
    rounds_up: ClassVar[bool] = True
    by_words: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.share, int | float) or not 0 < self.share <= 1:
            raise UserError(
                f"masking.share={self.share} is out of range", "give a share of the draws above 0, at most 1"
            )

    def __call__(self, text: Text, noise: Noise) -> Marks:
        words = find_units(text)
        if text.annotated_BL is None:
            raise UserError(
                "masking=annotated_span, but the text is not annotated", "prepare the data with its annotator"
            )
        # S annotated spans of all rows from left to right; a token has the number of its span, -1 outside of them
        inside_BL = (text.annotated_BL > 0) & text.free_BL
        begin_F = find_begins(inside_BL, text.annotated_BL == 1).reshape(-1)[words.slot_F]
        span_F = np.where(inside_BL.reshape(-1)[words.slot_F], np.cumsum(begin_F) - 1, -1)
        row_S, column_S = np.divmod(words.slot_F[begin_F], text.ids_BL.shape[1])
        order_S = np.lexsort((noise.at("annotated span", row_S, column_S), row_S))
        first_B = np.searchsorted(row_S, np.arange(len(words.free_B)))
        nth_S = np.arange(len(row_S)) - first_B[row_S]
        # A coin for each draw is equivalent to a geometric number of words between two spans: bounds of a draw of 32
        # bits between 0, 1, 2, ... words, the number of coins before the first for a span
        most = 1 if self.share == 1 else min(_MOST, math.ceil(32 * math.log(2) / -math.log1p(-self.share)))
        bound_N: NDArray[np.float64] = np.rint((1 - (1 - self.share) ** np.arange(1, most + 1)) * 2**32)
        gap_S = np.searchsorted(bound_N, noise.at("words between spans", row_S, nth_S), side="right")
        total_S = np.cumsum(gap_S)
        ahead_S = total_S - (total_S - gap_S)[first_B[row_S]]  # words ahead of the row's n-th span
        drawn_S = np.full(len(row_S) + 1, NEVER, np.int64)  # the last: of what is in no span
        drawn_S[order_S] = ahead_S + nth_S
        # rank_U + spans_U: the number of the draw that takes each word
        order_U, row_U = shuffle_units(text, words, noise), words.row_U
        rank_U = np.empty(len(row_U), np.int64)
        rank_U[order_U] = np.arange(len(row_U)) - np.append(0, words.until_B)[row_U]
        key_S = row_S << 2 * FIELD | ahead_S
        spans_U = np.searchsorted(key_S, row_U << 2 * FIELD | rank_U, side="right") - np.searchsorted(row_S, row_U)
        # the draw that makes each token noise: its word's, or its span's if that is earlier
        drawn_F = np.minimum((rank_U + spans_U)[words.unit_F], drawn_S[span_F]).astype(np.int32)
        noisy_N = take_earliest(drawn_F, words, spanbert_budget(words.free_B, self.rate))
        chosen_BL = np.zeros(text.free_BL.shape, np.bool_)
        chosen_BL.reshape(-1)[words.slot_F[noisy_N]] = True
        return mark_runs(chosen_BL)
