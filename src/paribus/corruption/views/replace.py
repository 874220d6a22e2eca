"""Noise replaced token by token, and the text unchanged."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.core.noise import Noise, below, integers
from paribus.corruption.views.view import SymbolView, View, check_symbol, pack_rows, real_tokens, symbol_id
from paribus.data.sequences import Array, Ints, Marks, Sequences, Text
from paribus.data.tokens.vocabulary import Vocabulary

UNITS = ("token", "word", "span")
DRAWS = ("uniform", "unigram")


@dataclass(frozen=True)
class Unchanged(View):
    """The text as it is."""

    def __call__(self, text: Text, marks: Marks, noise: Noise, vocabulary: Vocabulary) -> Text:
        return text


@dataclass(frozen=True)
class Replace(View):
    """Each noise token becomes the mask, a random ordinary token, or stays, with these shares.

    unit: what one draw decides: a `token`, the noise of a `word`, or a `span` of noise (SpanBERT). Random tokens are
    drawn one by one whatever the unit.   BERT (arXiv 1810.04805), section 3.1
    draw: random tokens are `uniform`, or as frequent as in the training text: `unigram` (SpanBERT's code).
    Raises UserError for shares that do not sum to 1, and an unknown unit or draw.
    """

    mask: float = 0.8
    random: float = 0.1
    keep: float = 0.1
    unit: str = "token"
    draw: str = "uniform"
    unset_values: ClassVar[Mapping[str, str]] = {"draw": "uniform"}

    def __post_init__(self) -> None:
        shares = (self.mask, self.random, self.keep)
        if min(shares) < 0 or not math.isclose(sum(shares), 1, abs_tol=1e-6):
            cause = "objective.view: mask={}, random={}, keep={}".format(*shares)
            raise UserError(cause, "give shares that are not negative and sum to 1")
        if self.unit not in UNITS:
            raise UserError(f"objective.view.unit={self.unit} is unknown", f"choose {', '.join(UNITS)}")
        if self.draw not in DRAWS:
            raise UserError(f"objective.view.draw={self.draw} is unknown", f"choose {' or '.join(DRAWS)}")

    @property
    def needs_counts(self) -> bool:
        return self.random > 0 and self.draw == "unigram"

    def __call__(self, text: Text, marks: Marks, noise: Noise, vocabulary: Vocabulary) -> Text | Sequences:
        return replace(text, ids_BL=self.corrupt_ids(text, marks, noise, vocabulary))

    def corrupt_ids(self, text: Text, marks: Marks, noise: Noise, vocabulary: Vocabulary) -> Ints:
        """int64 [B, L]: the ids that are read."""
        slot_P = marks.noise_P
        row_P, position_P = np.divmod(slot_P, text.ids_BL.shape[1])
        draw_P = noise.at("replace", row_P, self._deciding_positions(text, marks, row_P, position_P))
        ids_BL = text.ids_BL.copy()
        ids_BL.reshape(-1)[slot_P[draw_P < below(self.mask)]] = vocabulary.mask
        random_P = np.flatnonzero((draw_P >= below(self.mask)) & (draw_P < below(self.mask + self.random)))
        bits_P = noise.at("random token", row_P[random_P], position_P[random_P])
        drawn = frequent_ids if self.draw == "unigram" else ordinary_ids
        ids_BL.reshape(-1)[slot_P[random_P]] = drawn(bits_P, vocabulary)
        return ids_BL

    def _deciding_positions(self, text: Text, marks: Marks, row_P: Array, position_P: Array) -> Array:
        """int64 [P]: the position whose draw decides: the first noise token of the same unit."""
        if self.unit == "token":
            return position_P
        unit_P = (text.word_BL if self.unit == "word" else marks.span_BL).reshape(-1)[marks.noise_P]
        lead_P = np.ones(len(unit_P), np.bool_)
        lead_P[1:] = (unit_P[1:] != unit_P[:-1]) | (row_P[1:] != row_P[:-1])
        leading_P: Array = position_P[lead_P][np.cumsum(lead_P) - 1]
        return leading_P


@dataclass(frozen=True)
class MaskTokens(SymbolView, Replace):
    """As `Replace`, but an end-of-sequence token closes the row; `symbol` as in `SharedSentinel`.

    Random tokens are never special; T5's own may be sentinels.   T5 (arXiv 1910.10683), section 3.3.1, table 3
    """

    mask: float = 1.0
    random: float = 0.0
    keep: float = 0.0
    symbol: str = "sentinel"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_symbol(self.symbol)

    @property
    def short_name(self) -> str:
        """m, or the shares in percent, such as r10s90."""
        shares = {"r": self.random, "k": self.keep, "s": self.mask}
        named = "".join(f"{kind}{100 * share:g}" for kind, share in shares.items() if share)
        return "m" if self.mask == 1 else named

    def __call__(self, text: Text, marks: Marks, noise: Noise, vocabulary: Vocabulary) -> Sequences:
        shown = replace(vocabulary, mask=symbol_id(self.symbol, vocabulary))
        return pack_rows(self.corrupt_ids(text, marks, noise, shown), real_tokens(text), vocabulary)


def frequent_ids(bits_P: NDArray[np.uint32], vocabulary: Vocabulary) -> Ints:
    """Draws as token ids, each as likely as it is frequent in the training text; never a special one."""
    count_V = vocabulary.count_V.copy()
    count_V[list(vocabulary.specials)] = 0
    bound_V = np.rint(np.cumsum(count_V) * (2**32 / count_V.sum()))
    drawn_P: Ints = np.searchsorted(bound_V, bits_P, side="right")
    return drawn_P


def ordinary_ids(bits_P: NDArray[np.uint32], vocabulary: Vocabulary) -> Ints:
    """Draws as token ids, uniform over the ids that are not special."""
    specials = np.asarray(vocabulary.specials, np.int64)
    rank_P = integers(bits_P, vocabulary.size - len(specials))
    return rank_P + np.searchsorted(specials - np.arange(len(specials)), rank_P, side="right")
