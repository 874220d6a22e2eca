"""Each hidden run as a sentinel of its own.   T5 (arXiv 1910.10683), section 3.1.4 and table 3"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from paribus.core.noise import Noise
from paribus.corruption.views.sequences import check_hides, leads, ranks, replaced, rows, shown
from paribus.data.text import Marks, Sequences, Text

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class UniqueSentinel:
    """The k-th hidden run of a row, from 0, becomes `<extra_id_k>`; the other tokens stay.

    hides: `noise` (what is read) or `text` (what is written: the noise, each span behind the sentinel of the text run
    before it, and no closing sentinel).
    """

    hides: str = "noise"
    semantics: ClassVar[int] = 1
    letter: ClassVar[str] = "u"

    def __post_init__(self) -> None:
        check_hides(self.hides)

    def __call__(self, text: Text, marks: Marks, noise: Noise, vocabulary: Vocabulary) -> Sequences:
        keep_BL, hidden_BL = shown(text, marks, self.hides)
        lead_P = leads(hidden_BL)
        sentinel_P = vocabulary.first_sentinel - ranks(lead_P, text.ids_BL.shape)
        keep_BL.reshape(-1)[lead_P] = True
        return rows(replaced(text.ids_BL, lead_P, sentinel_P), keep_BL, vocabulary)

    def length(self, raw: float, noise: float, spans: float) -> float:
        """Tokens of a row, its end included; `spans` runs of noise and as many of text."""
        return (raw - noise if self.hides == "noise" else noise) + spans + 1
