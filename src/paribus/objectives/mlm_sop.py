"""Masked language modeling and sentence-order prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from paribus.objectives.mlm_nsp import MaskedLMWithNSP


@dataclass(frozen=True)
class MaskedLMWithSOP(MaskedLMWithNSP):
    """As with NSP, but of pairs whose segments follow each other or are swapped (ALBERT, section 3.1)."""

    semantics: ClassVar[int] = 1
    needs: ClassVar[str | None] = "order"
    pair: ClassVar[str] = "sop"
