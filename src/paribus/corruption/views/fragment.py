"""The noise alone, where it stands in the text.   MASS (arXiv 1905.02450), section 3.2"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from paribus.core.noise import Noise
from paribus.corruption.views.sequences import rows
from paribus.data.text import Marks, Sequences, Text

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class Fragment:
    """The tokens of the noise with their columns in the text and no end; the decoder reads the token before each."""

    semantics: ClassVar[int] = 1
    letter: ClassVar[str] = "fragment"

    def __call__(self, text: Text, marks: Marks, noise: Noise, vocabulary: Vocabulary) -> Sequences:
        noise_BL = marks.span_BL > 0
        found = rows(text.ids_BL, noise_BL, vocabulary, end=False)
        column_BL = np.broadcast_to(np.arange(text.ids_BL.shape[1]), text.ids_BL.shape)
        return found._replace(place_BL=rows(column_BL, noise_BL, vocabulary, end=False).ids_BL)

    def length(self, raw: float, noise: float, spans: float) -> float:
        """Tokens of a row."""
        return noise
