"""The base class of corruption views, and the row operations that text-to-text views share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import numpy as np

from paribus.core.errors import UserError
from paribus.core.noise import Noise
from paribus.data.sequences import Flags, Ints, Marks, Sequences, Text
from paribus.data.tokens.vocabulary import Vocabulary

HIDES: Final = ("noise", "text")
SYMBOLS: Final = ("sentinel", "mask")


@dataclass(frozen=True)
class View(ABC):
    """What is read or written, given a row and its noise. A subclass overrides these defaults.

    A view in place gives a `Text` of the same shape; a text-to-text view gives `Sequences`.
    """

    semantics: ClassVar[int] = 1
    empty: ClassVar[bool] = False  # shows no token
    whole: ClassVar[bool] = False  # shows every token of the text as it was
    in_drawn_order: ClassVar[bool] = False  # shows the tokens in the order that the noise pattern draws
    marks_spans: ClassVar[bool] = False  # shows each hidden span as one token
    drops_spans: ClassVar[bool] = False  # leaves hidden spans out
    in_place: ClassVar[bool] = False  # written tokens keep their places in the text

    @abstractmethod
    def __call__(self, text: Text, marks: Marks, noise: Noise, vocabulary: Vocabulary) -> Text | Sequences:
        """The rows of this view."""

    @property
    def short_name(self) -> str:
        """The part of a row's name in T5's tables, such as the u in span_3_15_u_u."""
        return type(self).__name__.lower()

    @property
    def side(self) -> str | None:
        """What the view hides, `noise` (if it is read) or `text` (if it is written); None: it serves as both."""
        return None

    @property
    def writes_mask(self) -> bool:
        """Whether a text-to-text view shows the mask token for what is hidden."""
        return False

    @property
    def needs_counts(self) -> bool:
        """Whether the view draws tokens by their frequency (`Vocabulary.count_V`)."""
        return False

    @property
    def sentinels(self) -> Literal["none", "one", "each"]:
        """How many sentinel tokens a row needs: none, one for all spans, or one for each span."""
        return "none"

    def length(self, raw: float, noise: float, spans: float) -> float:
        """Tokens of a row of `raw` tokens with these counts, the end-of-sequence token included."""
        return raw + 1


class SymbolView(View):
    """A view that shows `symbol`, the first sentinel or the mask token, for what it hides."""

    symbol: str

    @property
    def writes_mask(self) -> bool:
        return self.symbol == "mask"

    @property
    def sentinels(self) -> Literal["none", "one", "each"]:
        return "one" if self.symbol == "sentinel" else "none"


@dataclass(frozen=True)
class HidingView(View):
    """A view that hides the `noise` (what is read) or the `text` (what is written: the noise in order).

    Raises UserError for another value of `hides`.
    """

    hides: str = "noise"

    def __post_init__(self) -> None:
        if self.hides not in HIDES:
            raise UserError(f"hides={self.hides} is unknown", f"choose {' or '.join(HIDES)}")

    @property
    def side(self) -> str | None:
        return self.hides

    def length(self, raw: float, noise: float, spans: float) -> float:
        """A hidden span is one token if spans are marked; there are as many spans of text as of noise."""
        return (raw - noise if self.hides == "noise" else noise) + (spans if self.marks_spans else 0) + 1


def check_symbol(symbol: str) -> None:
    """Raise UserError for a token that cannot replace hidden tokens."""
    if symbol not in SYMBOLS:
        raise UserError(f"symbol={symbol} is unknown", f"choose {' or '.join(SYMBOLS)}")


def symbol_id(symbol: str, vocabulary: Vocabulary) -> int:
    """The id of the token that replaces hidden tokens."""
    return vocabulary.first_sentinel if symbol == "sentinel" else vocabulary.mask


def real_tokens(text: Text) -> Flags:
    """bool [B, L]: the places that are not padding."""
    flag_BL: Flags = np.arange(text.ids_BL.shape[1]) < text.length_B[:, None]
    return flag_BL


def split(text: Text, marks: Marks, hides: str) -> tuple[Flags, Flags]:
    """(tokens that the view shows, tokens that it hides), bool [B, L]."""
    noise_BL, real_BL = marks.span_BL > 0, real_tokens(text)
    text_BL = real_BL & ~noise_BL
    return (text_BL, noise_BL) if hides == "noise" else (noise_BL, text_BL)


def pack_rows(ids_BL: Ints, keep_BL: Flags, vocabulary: Vocabulary, end: bool = True) -> Sequences:
    """The kept tokens of each row without gaps, and the end-of-sequence token after them."""
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
