"""The whole text, or nothing of it.   T5 (arXiv 1910.10683), section 3.3.1 and table 3"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from paribus.core.noise import Noise
from paribus.corruption.views.sequences import real, rows
from paribus.data.text import Marks, Sequences, Text

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class Full:
    """Every token as it was."""

    semantics: ClassVar[int] = 1
    letter: ClassVar[str] = "f"

    def __call__(self, text: Text, marks: Marks, noise: Noise, vocabulary: Vocabulary) -> Sequences:
        return rows(text.ids_BL, real(text), vocabulary)

    def length(self, raw: float, noise: float, spans: float) -> float:
        """Tokens of a row, its end included."""
        return raw + 1


@dataclass(frozen=True)
class Permuted(Full):
    """Every token, in the order that the masking gives."""

    letter: ClassVar[str] = "p"


@dataclass(frozen=True)
class Nothing:
    """No token at all, not even an end: a language model has nothing to read before it writes."""

    semantics: ClassVar[int] = 1
    letter: ClassVar[str] = "n"

    def __call__(self, text: Text, marks: Marks, noise: Noise, vocabulary: Vocabulary) -> Sequences:
        return rows(text.ids_BL, np.zeros(text.ids_BL.shape, np.bool_), vocabulary, end=False)

    def length(self, raw: float, noise: float, spans: float) -> float:
        """No token."""
        return 0
