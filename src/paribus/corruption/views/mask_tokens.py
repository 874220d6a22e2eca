"""Each noise token replaced where it stands.   T5 (arXiv 1910.10683), section 3.3.1, table 3"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from paribus.core.noise import Noise
from paribus.corruption.views.replace import Replace
from paribus.corruption.views.sequences import check_symbol, real, rows, symbol_id
from paribus.data.text import Marks, Sequences, Text

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class MaskTokens(Replace):
    """As `Replace`, but an end-of-sequence token closes the row; `symbol` as in `SharedSentinel`.

    Random tokens are never special; T5's own may be sentinels.
    """

    mask: float = 1.0
    random: float = 0.0
    keep: float = 0.0
    symbol: str = "sentinel"
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_symbol(self.symbol)

    @property
    def letter(self) -> str:
        """m, or the shares in percent, such as r10s90."""
        shares = {"r": self.random, "k": self.keep, "s": self.mask}
        named = "".join(f"{kind}{100 * share:g}" for kind, share in shares.items() if share)
        return "m" if self.mask == 1 else named

    def __call__(self, text: Text, marks: Marks, noise: Noise, vocabulary: Vocabulary) -> Sequences:  # type: ignore[override]
        shown = super().__call__(text, marks, noise, replace(vocabulary, mask=symbol_id(self.symbol, vocabulary)))
        return rows(shown.ids_BL, real(text), vocabulary)

    def length(self, raw: float, noise: float, spans: float) -> float:
        """Tokens of a row, its end included."""
        return raw + 1
