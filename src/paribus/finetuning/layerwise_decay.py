"""Lower learning rates for lower layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from paribus.core.errors import UserError
from paribus.finetuning.method import Method

if TYPE_CHECKING:
    from paribus.models.network import Network


@dataclass(frozen=True)
class LayerwiseDecay(Method):
    """rate(d) = decay ** (layers + top_gap - d): d is 0 for embeddings, i + 1 for layer i; the head has the full rate.

    ELECTRA (arXiv 2003.10555) is published with `top_gap=2`, a level left over from a pooler that was removed; 1 is its
    mend, and ULMFiT's rule with decay = 1 / 2.6 (arXiv 1801.06146, section 3.2). With 0 the top layer has the full rate
    (Sun et al., arXiv 1905.05583, section 5.4.3). Layers of encoder and decoder at the same height have the same rate;
    embeddings have theirs even where the head is tied to them. Raises UserError for values outside these ranges.
    """

    decay: float
    top_gap: int = 2
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not 0 < self.decay <= 1:
            raise UserError(
                f"finetune.method.decay={self.decay} is outside (0, 1]", "give a factor a layer such as 0.9"
            )
        if self.top_gap not in (0, 1, 2):
            raise UserError(f"finetune.method.top_gap={self.top_gap} is unknown", "use 0, 1 or 2")

    def rate(self, encoder: Network, name: str) -> float:
        return float(self.decay ** (encoder.depth + self.top_gap - encoder.depth_of(name)))
