"""Masked language modeling and StructBERT's sentence objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from paribus.objectives.mlm_nsp import MaskedLMWithNSP


@dataclass(frozen=True)
class MaskedLMWithThree(MaskedLMWithNSP):
    """As with NSP, but of three kinds of pairs: B follows A, precedes it, or is of another document (StructBERT, arXiv
    1908.04577, section 2.3)."""

    semantics: ClassVar[int] = 1
    needs: ClassVar[str | None] = "three"
    pair: ClassVar[str] = "sentence"
    kinds: ClassVar[int] = 3
