"""Masked language modeling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from paribus.corruption.collators.encoder import EncoderCollator

if TYPE_CHECKING:
    from paribus.models.encoder import Encoder
    from paribus.objectives.objective import Objective


@dataclass(frozen=True)
class MaskedLM:
    """Predict the noised positions of one text (BERT, section 3.1); `encoding` says what stands at them.

    With `shuffling` the original words at places out of order are predicted too, by the same head and as a mean of their
    own (StructBERT, arXiv 1908.04577, section 2.2).
    """

    view: Any
    shuffling: Any = None
    semantics: ClassVar[int] = 1
    unset_values: ClassVar[Mapping[str, Any]] = {"shuffling": None}
    needs: ClassVar[str | None] = None  # pairs: "next", "order" or "three"
    noisy: ClassVar[bool] = True  # whether it predicts noise; otherwise all of the text
    attention: ClassVar[str | None] = None  # what the model's attention must be; None: any
    spans: ClassVar[bool] = False  # whether noise must come in spans

    @property
    def collator(self) -> Any:
        """The arrays that model and heads read."""
        return EncoderCollator()

    def build(self, encoder: Encoder) -> Objective:
        """The objective with its head, not yet initialized."""
        from paribus.models.heads.word_order import WordOrderHead
        from paribus.objectives.objective import Objective

        heads = self._heads(encoder)
        return Objective(heads if self.shuffling is None else {**heads, "word_order": WordOrderHead(heads["mlm"])})

    def _heads(self, encoder: Encoder) -> dict[str, Any]:
        """Those that own parameters."""
        from paribus.models.heads.mlm import MaskedLMHead

        return {"mlm": MaskedLMHead(encoder)}

    def head_flops(self, predicted: float, hidden: int, embedding: int, vocabulary: int) -> float:
        """Floating-point operations of one forward pass of the head over `predicted` positions.

        `hidden` and `embedding`: widths of the layers and of the table that the head is tied to.
        """
        return predicted * 2.0 * (hidden * embedding + embedding * vocabulary)
