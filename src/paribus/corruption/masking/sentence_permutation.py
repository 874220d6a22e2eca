"""Sentences in random order.   BART (arXiv 1910.13461), section 2.2; fairseq's `permute_sentences`"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from paribus.core.noise import Noise
from paribus.corruption.masking.everything import Everything
from paribus.corruption.views.sequences import check_share
from paribus.data.formats.segments import before, runs
from paribus.data.text import Marks, Text


@dataclass(frozen=True)
class SentencePermutation(Everything):
    """ceil(share * sentences) sentences of a row, drawn at random, change places among themselves.

    Sentences are those of the corpus; a window may begin or end within one.
    Raises UserError for a share outside [0, 1].
    """

    share: float = 1.0
    reorders: ClassVar[bool] = True
    row: ClassVar[str] = "sentences"

    def __post_init__(self) -> None:
        check_share("masking.share", self.share)

    def __call__(self, text: Text, noise: Noise) -> Marks:
        return replace(super().__call__(text, noise), order_BL=permuted(text, noise, self.share))


def permuted(text: Text, noise: Noise, share: float) -> NDArray[np.int64]:
    """[B, L]: the column to read at each place; padding stays, as a last sentence that is never drawn."""
    shape = text.ids_BL.shape
    begin_BL = np.ones(shape, np.bool_)
    begin_BL[:, 1:] = text.sentence_BL[:, 1:] != text.sentence_BL[:, :-1]
    first_S = np.flatnonzero(begin_BL)
    length_S = np.diff(first_S, append=begin_BL.size)
    row_S, column_S = np.divmod(first_S, shape[1])
    moves_S = _drawn(row_S, column_S < text.length_B[row_S], noise.at("sentences", row_S, column_S), share)
    source_S = np.arange(len(first_S))
    place_M = np.flatnonzero(moves_S)
    draw_M = noise.at("sentence order", row_S[place_M], column_S[place_M])
    source_S[place_M] = place_M[np.lexsort((draw_M, row_S[place_M]))]
    order_F: NDArray[np.int64] = runs(column_S[source_S], length_S[source_S])
    return order_F.reshape(shape)


def _drawn(
    row_S: NDArray[np.int64], real_S: NDArray[np.bool_], draw_S: NDArray[np.uint32], share: float
) -> NDArray[np.bool_]:
    """bool [S]: ceil(share * sentences) of each row."""
    count_B = np.bincount(row_S, real_S, int(row_S[-1]) + 1)
    order_S = np.lexsort((draw_S, ~real_S, row_S))
    size_B = np.bincount(row_S)
    rank_S = np.arange(len(row_S)) - np.repeat(before(size_B), size_B)
    flag_S = np.zeros(len(row_S), np.bool_)
    flag_S[order_S] = rank_S < np.ceil(share * count_B)[row_S]
    return flag_S & real_S
