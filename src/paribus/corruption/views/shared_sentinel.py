"""Every hidden span as one and the same token.   T5 (arXiv 1910.10683), table 3; BART (arXiv 1910.13461), 2.2"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from paribus.core.noise import Noise, below
from paribus.corruption.views.replace import ordinary
from paribus.corruption.views.sequences import (
    Flags,
    Ints,
    check_hides,
    check_share,
    check_symbol,
    leads,
    replaced,
    rows,
    shown,
    symbol_id,
)
from paribus.data.formats.segments import runs
from paribus.data.text import Marks, Sequences, Text

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class SharedSentinel:
    """A hidden span becomes `symbol`, the other tokens stay; spans without length (BART) are the symbol, too.

    hides: `noise` (what is read) or `text` (what is written). symbol: `sentinel` is `<extra_id_0>` (T5), `mask` the
    mask token (BART). random: share of the spans shown as a random token instead.
    """

    hides: str = "noise"
    symbol: str = "sentinel"
    random: float = 0.0
    semantics: ClassVar[int] = 1
    letter: ClassVar[str] = "s"

    def __post_init__(self) -> None:
        check_hides(self.hides)
        check_symbol(self.symbol)
        check_share("random", self.random)

    def __call__(self, text: Text, marks: Marks, noise: Noise, vocabulary: Vocabulary) -> Sequences:
        keep_BL, hidden_BL = shown(text, marks, self.hides)
        lead_P = leads(hidden_BL, marks.span_BL if self.hides == "noise" else None)
        keep_BL.reshape(-1)[lead_P] = True
        ids_BL = replaced(text.ids_BL, lead_P, self._symbols(lead_P, text.ids_BL.shape[1], noise, vocabulary))
        if marks.insert_BL is not None and self.hides == "noise":
            ids_BL, keep_BL = with_blanks(ids_BL, keep_BL, marks.insert_BL, symbol_id(self.symbol, vocabulary))
        return rows(ids_BL, keep_BL, vocabulary)

    def _symbols(self, lead_P: Ints, width: int, noise: Noise, vocabulary: Vocabulary) -> Ints:
        symbol_P = np.full(len(lead_P), symbol_id(self.symbol, vocabulary))
        if self.random:
            row_P, column_P = np.divmod(lead_P, width)
            drawn_P = noise.at("replace", row_P, column_P) < below(self.random)
            symbol_P[drawn_P] = ordinary(noise.at("random token", row_P[drawn_P], column_P[drawn_P]), vocabulary)
        return symbol_P

    def length(self, raw: float, noise: float, spans: float) -> float:
        """Tokens of a row, its end included; `spans` runs of noise and as many of text."""
        return (raw - noise if self.hides == "noise" else noise) + spans + 1


def with_blanks(ids_BL: Ints, keep_BL: Flags, insert_BE: NDArray[np.int16], symbol: int) -> tuple[Ints, Flags]:
    """(ids, what to keep) with so many symbols before each place of the rows, and behind the last (E = L + 1)."""
    rows_, width = ids_BL.shape
    size_BE = insert_BE.astype(np.int64) + np.append(np.ones((rows_, width), np.int64), np.zeros((rows_, 1), int), 1)
    end_BE = np.cumsum(size_BE, axis=1)
    out_BM = np.full((rows_, int(end_BE[:, -1].max(initial=0))), symbol)
    into_P = (end_BE[:, :-1] - 1 + np.arange(rows_)[:, None] * out_BM.shape[1]).reshape(-1)
    out_BM.reshape(-1)[into_P] = ids_BL.reshape(-1)
    flag_BM = np.zeros(out_BM.shape, np.bool_)
    flag_BM.reshape(-1)[into_P] = keep_BL.reshape(-1)
    slot_E = np.flatnonzero(insert_BE)
    row_E, place_E = np.divmod(slot_E, width + 1)
    count_E = insert_BE.reshape(-1)[slot_E].astype(np.int64)
    first_E = end_BE[row_E, place_E] - size_BE[row_E, place_E]
    flag_BM.reshape(-1)[runs(first_E + row_E * out_BM.shape[1], count_E)] = True
    return out_BM, flag_BM
