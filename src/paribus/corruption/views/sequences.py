"""What the encodings of text-to-text objectives share: which tokens a view hides, and rows from what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.data.formats.segments import before
from paribus.data.text import Marks, Sequences, Text

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]
HIDES: Final = ("noise", "text")
SYMBOLS: Final = ("sentinel", "mask")


def check_hides(hides: str) -> None:
    """Raise UserError for what no view can hide."""
    if hides not in HIDES:
        raise UserError(f"hides={hides}", f"choose {' or '.join(HIDES)}")


def check_symbol(symbol: str) -> None:
    """Raise UserError for a token that cannot stand for hidden ones."""
    if symbol not in SYMBOLS:
        raise UserError(f"symbol={symbol}", f"choose {' or '.join(SYMBOLS)}")


def check_share(name: str, share: float) -> None:
    """Raise UserError for a share outside [0, 1]."""
    if not isinstance(share, int | float) or not 0 <= share <= 1:
        raise UserError(f"{name}={share}", "give a share from 0 to 1")


def symbol_id(symbol: str, vocabulary: Vocabulary) -> int:
    """The id of the token that stands for hidden ones."""
    return vocabulary.first_sentinel if symbol == "sentinel" else vocabulary.mask


def real(text: Text) -> Flags:
    """bool [B, L]: what is no padding."""
    flag_BL: Flags = np.arange(text.ids_BL.shape[1]) < text.length_B[:, None]
    return flag_BL


def shown(text: Text, marks: Marks, hides: str) -> tuple[Flags, Flags]:
    """(tokens that the view shows, tokens that it hides), bool [B, L]."""
    noise_BL, real_BL = marks.span_BL > 0, real(text)
    text_BL = real_BL & ~noise_BL
    return (text_BL, noise_BL) if hides == "noise" else (noise_BL, text_BL)


def leads(hidden_BL: Flags, span_BL: NDArray[np.int16] | None = None) -> Ints:
    """Flat places of the first token of each run of hidden ones, ascending; a new span number starts a run, too."""
    begin_BL = hidden_BL.copy()
    if span_BL is None:
        begin_BL[:, 1:] &= ~hidden_BL[:, :-1]
    else:
        begin_BL[:, 1:] &= span_BL[:, 1:] != span_BL[:, :-1]
    return np.flatnonzero(begin_BL)


def ranks(slot_P: Ints, shape: tuple[int, ...]) -> Ints:
    """0, 1, ... for the flat places of each row."""
    row_P = slot_P // shape[1]
    rank_P: Ints = np.arange(len(slot_P)) - before(np.bincount(row_P, minlength=shape[0]))[row_P]
    return rank_P


def rows(ids_BL: Ints, keep_BL: Flags, vocabulary: Vocabulary, end: bool = True) -> Sequences:
    """The tokens to keep, closed up, with the end-of-sequence token behind them."""
    length_B = np.count_nonzero(keep_BL, axis=1)
    width = int(length_B.max(initial=0))
    kept_P = ids_BL.reshape(-1)[np.flatnonzero(keep_BL)]
    out_BL = np.full((len(length_B), width + end), vocabulary.pad, np.int64)
    if (length_B == width).all():
        out_BL[:, :width] = kept_P.reshape(len(length_B), width)
    else:
        out_BL[:, :width][np.arange(width) < length_B[:, None]] = kept_P
    if end:
        out_BL[np.arange(len(length_B)), length_B] = vocabulary.sep
    return Sequences(out_BL, length_B + end)


def replaced(ids_BL: Ints, slot_P: Ints, value: Any) -> Ints:
    """A copy with values written at flat places."""
    out_BL = ids_BL.copy()
    out_BL.reshape(-1)[slot_P] = value
    return out_BL
