"""Masked language modeling and a prediction from pairs of segments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from paribus.objectives.mlm import MaskedLM

if TYPE_CHECKING:
    from paribus.models.heads.head import Head
    from paribus.models.network import Network


@dataclass(frozen=True)
class MaskedLMWithNSP(MaskedLM):
    """The sum of two means: over noised positions, and over pairs whose B follows A or is from another document (BERT,
    section 3.1). The head on pairs reads one position per row and is left out of `head_flops`.
    """

    semantics: ClassVar[int] = 1
    needed_pairs: ClassVar[str | None] = "next"
    pair_loss_name: ClassVar[str] = "nsp"
    pair_kinds: ClassVar[int] = 2

    def further_heads(self, network: Network) -> dict[str, Head]:
        from paribus.models.heads.rows import PairHead

        return {self.pair_loss_name: PairHead(network.width, self.pair_kinds)}


@dataclass(frozen=True)
class MaskedLMWithSOP(MaskedLMWithNSP):
    """As with NSP, but with pairs whose segments follow each other or are swapped (ALBERT, section 3.1)."""

    semantics: ClassVar[int] = 1
    needed_pairs: ClassVar[str | None] = "order"
    pair_loss_name: ClassVar[str] = "sop"


@dataclass(frozen=True)
class MaskedLMWithThree(MaskedLMWithNSP):
    """As with NSP, but with three kinds of pairs: B follows A, precedes it, or is from another document (StructBERT,
    arXiv 1908.04577, section 2.3).
    """

    semantics: ClassVar[int] = 1
    needed_pairs: ClassVar[str | None] = "three"
    pair_loss_name: ClassVar[str] = "sentence"
    pair_kinds: ClassVar[int] = 3
