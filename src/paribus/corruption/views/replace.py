"""Noise replaced in place: by the mask, by a random token, or kept.   BERT (arXiv 1810.04805), section 3.1"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.core.noise import Noise, below, integers
from paribus.data.text import Array, Marks, Text

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary

UNITS = ("token", "word", "span")


@dataclass(frozen=True)
class Replace:
    """Each noise token becomes the mask, a uniform random token that is never special, or stays, with these shares.

    unit: what one draw decides: a `token`, the noise of a `word`, or a `span` of noise (SpanBERT). Random tokens are
    drawn one by one whatever the unit.
    Raises UserError for shares that do not sum to 1 or an unknown unit.
    """

    mask: float = 0.8
    random: float = 0.1
    keep: float = 0.1
    unit: str = "token"
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        shares = (self.mask, self.random, self.keep)
        if min(shares) < 0 or not math.isclose(sum(shares), 1, abs_tol=1e-6):
            cause = "objective.view: mask={}, random={}, keep={}".format(*shares)
            raise UserError(cause, "give shares that are not negative and sum to 1")
        if self.unit not in UNITS:
            raise UserError(f"objective.view.unit={self.unit}", f"choose {', '.join(UNITS)}")

    def __call__(self, text: Text, marks: Marks, noise: Noise, vocabulary: Vocabulary) -> Text:
        slot_P = marks.noise_P
        row_P, position_P = np.divmod(slot_P, text.ids_BL.shape[1])
        draw_P = noise.at("replace", row_P, self._drawing(text, marks, row_P, position_P))
        ids_BL = text.ids_BL.copy()
        ids_BL.reshape(-1)[slot_P[draw_P < below(self.mask)]] = vocabulary.mask
        random_P = np.flatnonzero((draw_P >= below(self.mask)) & (draw_P < below(self.mask + self.random)))
        drawn = noise.at("random token", row_P[random_P], position_P[random_P])
        ids_BL.reshape(-1)[slot_P[random_P]] = ordinary(drawn, vocabulary)
        return replace(text, ids_BL=ids_BL)

    def _drawing(self, text: Text, marks: Marks, row_P: Array, position_P: Array) -> Array:
        """int64 [P]: the position whose draw decides, the first of the noise in the same unit."""
        if self.unit == "token":
            return position_P
        unit_P = (text.word_BL if self.unit == "word" else marks.span_BL).reshape(-1)[marks.noise_P]
        lead_P = np.ones(len(unit_P), np.bool_)
        lead_P[1:] = (unit_P[1:] != unit_P[:-1]) | (row_P[1:] != row_P[:-1])
        leading_P: Array = position_P[lead_P][np.cumsum(lead_P) - 1]
        return leading_P


def ordinary(bits_P: NDArray[np.uint32], vocabulary: Vocabulary) -> NDArray[np.int64]:
    """Draws as token ids, uniform over those that are not special."""
    specials = np.asarray(vocabulary.specials, np.int64)
    rank_P = integers(bits_P, vocabulary.size - len(specials))
    return rank_P + np.searchsorted(specials - np.arange(len(specials)), rank_P, side="right")
