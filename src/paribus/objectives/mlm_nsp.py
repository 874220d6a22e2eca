"""Masked language modeling and next-sentence prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from paribus.objectives.mlm import MaskedLM

if TYPE_CHECKING:
    from paribus.models.encoder import Encoder


@dataclass(frozen=True)
class MaskedLMWithNSP(MaskedLM):
    """The sum of two means: over noised positions, and over pairs whose B follows A or is of another document (BERT,
    section 3.1). The head on pairs reads one position a row and is left out of `head_flops`.
    """

    semantics: ClassVar[int] = 1
    needs: ClassVar[str | None] = "next"
    pair: ClassVar[str] = "nsp"
    kinds: ClassVar[int] = 2

    def _heads(self, encoder: Encoder) -> dict[str, Any]:
        from paribus.models.heads.pair import PairHead

        return {**super()._heads(encoder), self.pair: PairHead(encoder, self.kinds)}
