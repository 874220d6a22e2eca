"""Patterns that choose no tokens: no noise, or all tokens as noise, in order or reordered."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from paribus.core.noise import Noise, integers
from paribus.corruption.masking.pattern import NoiseCounts, NoisePattern, check_share
from paribus.data.sequences import Ints, Marks, Text, concatenate_ranges, number_within


@dataclass(frozen=True)
class NoNoise(NoisePattern):
    """Every free token is predicted and none is noise: for objectives that hide the text by their attention mask.

    `schedule` says when pairs are drawn again, if the input format has pairs.
    """

    rate: float = field(default=0.0, init=False)
    spans: ClassVar[bool] = False
    rounds_up: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """The rate is constant."""

    def __call__(self, text: Text, noise: Noise) -> Marks:
        return Marks(np.zeros(text.free_BL.shape, np.int16), predicted_BL=text.free_BL)


@dataclass(frozen=True)
class Everything(NoisePattern):
    """The whole row as one span: a language model's objective."""

    rate: float = field(default=1.0, init=False)
    fixed: ClassVar[bool] = True
    single_span: ClassVar[bool] = True
    whole_row: ClassVar[bool] = True
    rounds_up: ClassVar[bool] = True
    row_name: ClassVar[str] = "all"

    def __post_init__(self) -> None:
        """The rate is constant."""

    def counts(self, raw: int) -> NoiseCounts:
        return NoiseCounts(raw, 1)

    def __call__(self, text: Text, noise: Noise) -> Marks:
        return Marks(text.free_BL.astype(np.int16))


@dataclass(frozen=True)
class _Reordering(Everything):
    """The whole row as one span, read in a different order."""

    reorders: ClassVar[bool] = True

    def __call__(self, text: Text, noise: Noise) -> Marks:
        return replace(super().__call__(text, noise), order_BL=self.draw_order(text, noise))

    @abstractmethod
    def draw_order(self, text: Text, noise: Noise) -> Ints:
        """int64 [B, L]: the column to read at each place; padding stays behind."""


@dataclass(frozen=True)
class Permute(_Reordering):
    """Deshuffling: all orders of a row's tokens are equally likely.   T5 (arXiv 1910.10683), section 3.3.1"""

    def draw_order(self, text: Text, noise: Noise) -> Ints:
        width = text.ids_BL.shape[1]
        key_BL = noise.bits("order", width).astype(np.uint64)
        key_BL[np.arange(width) >= text.length_B[:, None]] = 1 << 32  # padding stays behind
        return np.argsort(key_BL, axis=1, kind="stable")


@dataclass(frozen=True)
class Rotation(_Reordering):
    """Each row starts at a uniformly drawn token other than its first, and wraps around to its beginning.

    BART (arXiv 1910.13461), section 2.2 (document rotation); fairseq's `add_rolling_noise`
    """

    row_name: ClassVar[str] = "rotation"

    def draw_order(self, text: Text, noise: Noise) -> Ints:
        length_B = text.length_B[:, None]
        offset_B = 1 + integers(noise.bits("rotation", 1), np.maximum(length_B - 1, 1))
        column_L = np.arange(text.ids_BL.shape[1])
        order_BL: Ints = np.where(column_L < length_B, (column_L + offset_B) % length_B, column_L)
        return order_BL


@dataclass(frozen=True)
class SentencePermutation(_Reordering):
    """ceil(share * sentences) randomly drawn sentences of a row are permuted among themselves.

    Sentences are those of the corpus; a window may begin or end within one.
    BART (arXiv 1910.13461), section 2.2; fairseq's `permute_sentences`
    Raises UserError for a share outside [0, 1].
    """

    share: float = 1.0
    row_name: ClassVar[str] = "sentences"

    def __post_init__(self) -> None:
        check_share("masking.share", self.share)

    def draw_order(self, text: Text, noise: Noise) -> Ints:
        return permute_sentences(text, noise, self.share)


def permute_sentences(text: Text, noise: Noise, share: float) -> Ints:
    """int64 [B, L]: the column to read at each place; padding stays, as a last sentence that is never drawn."""
    shape = text.ids_BL.shape
    begin_BL = np.ones(shape, np.bool_)
    begin_BL[:, 1:] = text.sentence_BL[:, 1:] != text.sentence_BL[:, :-1]
    first_S = np.flatnonzero(begin_BL)
    length_S = np.diff(first_S, append=begin_BL.size)
    row_S, column_S = np.divmod(first_S, shape[1])
    draw_S = noise.at("sentences", row_S, column_S)
    real_S = column_S < text.length_B[row_S]
    wanted_B = np.ceil(share * np.bincount(row_S, real_S))
    moves_S = np.zeros(len(row_S), np.bool_)
    moves_S[np.lexsort((draw_S, ~real_S, row_S))] = number_within(np.bincount(row_S)) < wanted_B[row_S]
    moves_S &= real_S
    source_S = np.arange(len(first_S))
    place_M = np.flatnonzero(moves_S)
    draw_M = noise.at("sentence order", row_S[place_M], column_S[place_M])
    source_S[place_M] = place_M[np.lexsort((draw_M, row_S[place_M]))]
    order_F: Ints = concatenate_ranges(column_S[source_S], length_S[source_S])
    return order_F.reshape(shape)
