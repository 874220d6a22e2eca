"""Tokens of the text as they were: all of them, none, what is not hidden, or the noise alone.

T5 (arXiv 1910.10683), section 3.3.1 and table 3; BART's token deletion (arXiv 1910.13461), section 2.2
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from paribus.core.noise import Noise
from paribus.corruption.views.view import HidingView, View, pack_rows, real_tokens, split
from paribus.data.sequences import Marks, Sequences, Text
from paribus.data.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class Full(View):
    """Every token as it was."""

    whole: ClassVar[bool] = True
    short_name: ClassVar[str] = "f"

    def __call__(self, text: Text, marks: Marks, noise: Noise, vocabulary: Vocabulary) -> Sequences:
        return pack_rows(text.ids_BL, real_tokens(text), vocabulary)


@dataclass(frozen=True)
class Permuted(Full):
    """Every token, in the order that the noise pattern draws."""

    whole: ClassVar[bool] = False
    in_drawn_order: ClassVar[bool] = True
    short_name: ClassVar[str] = "p"


@dataclass(frozen=True)
class Nothing(View):
    """No token, not even an end: a language model reads nothing before it writes."""

    empty: ClassVar[bool] = True
    short_name: ClassVar[str] = "n"

    def __call__(self, text: Text, marks: Marks, noise: Noise, vocabulary: Vocabulary) -> Sequences:
        return pack_rows(text.ids_BL, np.zeros(text.ids_BL.shape, np.bool_), vocabulary, end=False)

    def length(self, raw: float, noise: float, spans: float) -> float:
        return 0


@dataclass(frozen=True)
class Drop(HidingView):
    """The tokens that are not hidden, without gaps."""

    drops_spans: ClassVar[bool] = True
    short_name: ClassVar[str] = "d"

    def __call__(self, text: Text, marks: Marks, noise: Noise, vocabulary: Vocabulary) -> Sequences:
        return pack_rows(text.ids_BL, split(text, marks, self.hides)[0], vocabulary)


@dataclass(frozen=True)
class Fragment(View):
    """The noise with its columns in the text and without an end; the decoder reads the token before each.

    Of what is read it sees no masked place.   MASS (arXiv 1905.02450), section 3.2, and its code
    """

    semantics: ClassVar[int] = 2
    in_place: ClassVar[bool] = True

    def __call__(self, text: Text, marks: Marks, noise: Noise, vocabulary: Vocabulary) -> Sequences:
        noise_BL = marks.span_BL > 0
        packed = pack_rows(text.ids_BL, noise_BL, vocabulary, end=False)
        column_BL = np.broadcast_to(np.arange(text.ids_BL.shape[1]), text.ids_BL.shape)
        return packed._replace(place_BL=pack_rows(column_BL, noise_BL, vocabulary, end=False).ids_BL)

    def length(self, raw: float, noise: float, spans: float) -> float:
        return noise
