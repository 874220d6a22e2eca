"""Masked language modelling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ceteris.layouts.encoder import Encoder as EncoderLayout

if TYPE_CHECKING:
    from ceteris.models.encoder import Encoder
    from ceteris.objectives.objective import Objective


@dataclass(frozen=True)
class MaskedLM:
    """Predict the noised positions of one text (BERT, section 3.1); `encoding` says what stands at them."""

    encoding: Any
    semantics: ClassVar[int] = 1
    needs: ClassVar[str | None] = None  # pairs, "next" or "order"
    noisy: ClassVar[bool] = True  # whether it predicts noise; otherwise all of the text
    attention: ClassVar[str | None] = None  # what the model's attention must be; None: any
    spans: ClassVar[bool] = False  # whether noise must come in spans

    @property
    def layout(self) -> Any:
        """The arrays that model and heads read."""
        return EncoderLayout()

    def build(self, encoder: Encoder) -> Objective:
        """The objective with its head, not yet initialised."""
        from ceteris.heads.mlm import MaskedLMHead
        from ceteris.objectives.objective import Objective

        return Objective({"mlm": MaskedLMHead(encoder)})

    def head_flops(self, predicted: float, hidden: int, vocabulary: int) -> float:
        """Floating-point operations of one forward pass of the head over `predicted` positions."""
        return predicted * 2.0 * (hidden**2 + hidden * vocabulary)
