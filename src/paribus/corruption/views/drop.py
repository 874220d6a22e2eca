"""Hidden tokens left out.   T5 (arXiv 1910.10683), table 3; BART's token deletion (arXiv 1910.13461), section 2.2"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from paribus.core.noise import Noise
from paribus.corruption.views.sequences import check_hides, rows, shown
from paribus.data.text import Marks, Sequences, Text

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class Drop:
    """What is not hidden, closed up. hides: `noise` (what is read) or `text` (what is written: the noise in order)."""

    hides: str = "noise"
    semantics: ClassVar[int] = 1
    letter: ClassVar[str] = "d"

    def __post_init__(self) -> None:
        check_hides(self.hides)

    def __call__(self, text: Text, marks: Marks, noise: Noise, vocabulary: Vocabulary) -> Sequences:
        return rows(text.ids_BL, shown(text, marks, self.hides)[0], vocabulary)

    def length(self, raw: float, noise: float, spans: float) -> float:
        """Tokens of a row, its end included."""
        return (raw - noise if self.hides == "noise" else noise) + 1
