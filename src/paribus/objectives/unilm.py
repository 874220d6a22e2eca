"""Masked language modeling under several attention masks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from paribus.corruption.collators.encoder import RankedCollator
from paribus.objectives.mlm import MaskedLM


@dataclass(frozen=True)
class UnifiedLM(MaskedLM):
    """The noised positions of every row, each row under the attention mask that `sight` draws for it, with one set of
    weights and one head (UniLM, arXiv 1905.03197, section 2.3).

    Its kinds of rows have no segment embeddings of their own. The common evaluation and fine-tuning see both sides.
    """

    attention_mask: Any = None
    semantics: ClassVar[int] = 1
    attention: ClassVar[str | None] = "full"

    @property
    def collator(self) -> Any:
        return RankedCollator()
