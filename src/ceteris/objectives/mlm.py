"""Masked language modelling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from ceteris.models.encoder import Encoder
    from ceteris.objectives.objective import Objective


@dataclass(frozen=True)
class MaskedLM:
    """Predict the noised positions of one text (BERT, section 3.1); `encoding` says what stands at them."""

    encoding: Any
    semantics: ClassVar[int] = 1
    needs: ClassVar[str | None] = None  # pairs, "next" or "order"

    def build(self, encoder: Encoder) -> Objective:
        """The objective with its head, not yet initialised."""
        from ceteris.heads.mlm import MaskedLMHead
        from ceteris.objectives.objective import Objective

        return Objective({"mlm": MaskedLMHead(encoder)})

    def head_flops(self, predicted: float, hidden: int, embedding: int, vocabulary: int) -> float:
        """Floating-point operations of one forward pass of the head over `predicted` positions.

        `hidden` and `embedding`: widths of the layers and of the table that the head is tied to.
        """
        return predicted * 2.0 * (hidden * embedding + embedding * vocabulary)
