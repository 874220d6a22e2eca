"""Text to text: read a corrupted text, write what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from paribus.models.text_to_text import TextToText
    from paribus.objectives.objective import Objective


@dataclass(frozen=True)
class Denoising:
    """How the encoder is shown the noise and what the decoder writes (T5, arXiv 1910.10683, section 3.3)."""

    inputs: Any
    targets: Any
    semantics: ClassVar[int] = 1
    writes: ClassVar[bool] = True  # needs a model that does

    def build(self, model: TextToText) -> Objective:
        """The objective with its head, not yet initialized."""
        from paribus.models.heads.language_model import LanguageModelHead
        from paribus.objectives.objective import Objective

        return Objective({"denoising": LanguageModelHead(model)})

    def head_flops(self, predicted: float, hidden: int, embedding: int, vocabulary: int) -> float:
        """Floating-point operations of one forward pass of the head over `predicted` positions."""
        return predicted * 2.0 * embedding * vocabulary
