"""Hidden spans as sentinel or mask tokens.   T5 (arXiv 1910.10683), section 3.1.4; BART (1910.13461), section 2.2"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from paribus.core.noise import Noise, below
from paribus.corruption.masking.pattern import check_share
from paribus.corruption.views.replace import ordinary_ids
from paribus.corruption.views.view import (
    HidingView,
    SymbolView,
    check_symbol,
    pack_rows,
    split,
    symbol_id,
)
from paribus.data.sequences import Flags, Ints, Marks, Sequences, Text, concatenate_ranges, number_within
from paribus.data.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class UniqueSentinel(HidingView):
    """The k-th hidden run of a row, from 0, becomes `<extra_id_k>`; the other tokens stay.

    If the text is hidden, each span of noise follows the sentinel of the text before it; no sentinel closes the row.
    """

    marks_spans: ClassVar[bool] = True
    short_name: ClassVar[str] = "u"
    sentinels: ClassVar[Literal["none", "one", "each"]] = "each"

    def __call__(self, text: Text, marks: Marks, noise: Noise, vocabulary: Vocabulary) -> Sequences:
        keep_BL, hidden_BL = split(text, marks, self.hides)
        lead_P = find_leads(hidden_BL)
        count_B = np.bincount(lead_P // text.ids_BL.shape[1])  # runs of each row
        ids_BL = text.ids_BL.copy()
        ids_BL.reshape(-1)[lead_P] = vocabulary.first_sentinel - number_within(count_B)
        keep_BL.reshape(-1)[lead_P] = True
        return pack_rows(ids_BL, keep_BL, vocabulary)


@dataclass(frozen=True)
class SharedSentinel(SymbolView, HidingView):
    """Each hidden span becomes `symbol`, and so do spans of length 0 (BART); the other tokens stay.

    symbol: `sentinel` is `<extra_id_0>` (T5), `mask` is the mask token (BART). random: share of the spans shown as a
    random token instead.
    Raises UserError for settings out of range.
    """

    symbol: str = "sentinel"
    random: float = 0.0
    marks_spans: ClassVar[bool] = True
    short_name: ClassVar[str] = "s"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_symbol(self.symbol)
        check_share("random", self.random)

    def __call__(self, text: Text, marks: Marks, noise: Noise, vocabulary: Vocabulary) -> Sequences:
        keep_BL, hidden_BL = split(text, marks, self.hides)
        lead_P = find_leads(hidden_BL, marks.span_BL if self.hides == "noise" else None)
        symbol_P = np.full(len(lead_P), symbol_id(self.symbol, vocabulary))
        if self.random:
            row_P, column_P = np.divmod(lead_P, text.ids_BL.shape[1])
            drawn_P = noise.at("replace", row_P, column_P) < below(self.random)
            bits_P = noise.at("random token", row_P[drawn_P], column_P[drawn_P])
            symbol_P[drawn_P] = ordinary_ids(bits_P, vocabulary)
        ids_BL = text.ids_BL.copy()
        ids_BL.reshape(-1)[lead_P] = symbol_P
        keep_BL.reshape(-1)[lead_P] = True
        if marks.insert_BL is not None and self.hides == "noise":
            ids_BL, keep_BL = insert_blanks(ids_BL, keep_BL, marks.insert_BL, symbol_id(self.symbol, vocabulary))
        return pack_rows(ids_BL, keep_BL, vocabulary)


def find_leads(hidden_BL: Flags, span_BL: NDArray[np.int16] | None = None) -> Ints:
    """Flat places of the first token of each hidden run, ascending; with `span_BL` a new span starts a run too."""
    begin_BL = hidden_BL.copy()
    if span_BL is None:
        begin_BL[:, 1:] &= ~hidden_BL[:, :-1]
    else:
        begin_BL[:, 1:] &= span_BL[:, 1:] != span_BL[:, :-1]
    return np.flatnonzero(begin_BL)


def insert_blanks(ids_BL: Ints, keep_BL: Flags, insert_BE: NDArray[np.int16], symbol: int) -> tuple[Ints, Flags]:
    """(ids, tokens to keep) with `insert` symbols before each place of the rows and after the last (E = L + 1)."""
    rows, width = ids_BL.shape
    size_BE = insert_BE.astype(np.int64) + np.append(np.ones((rows, width), np.int64), np.zeros((rows, 1), int), 1)
    end_BE = np.cumsum(size_BE, axis=1)
    out_BM = np.full((rows, int(end_BE[:, -1].max(initial=0))), symbol)
    into_P = (end_BE[:, :-1] - 1 + np.arange(rows)[:, None] * out_BM.shape[1]).reshape(-1)
    out_BM.reshape(-1)[into_P] = ids_BL.reshape(-1)
    flag_BM = np.zeros(out_BM.shape, np.bool_)
    flag_BM.reshape(-1)[into_P] = keep_BL.reshape(-1)
    slot_E = np.flatnonzero(insert_BE)
    row_E, place_E = np.divmod(slot_E, width + 1)
    count_E = insert_BE.reshape(-1)[slot_E].astype(np.int64)
    first_E = end_BE[row_E, place_E] - size_BE[row_E, place_E]
    flag_BM.reshape(-1)[concatenate_ranges(first_E + row_E * out_BM.shape[1], count_E)] = True
    return out_BM, flag_BM
