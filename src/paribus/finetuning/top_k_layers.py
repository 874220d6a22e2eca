"""Fine-tuning the uppermost layers alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from paribus.core.errors import UserError
from paribus.finetuning.method import Method

if TYPE_CHECKING:
    from paribus.models.network import Network


@dataclass(frozen=True)
class TopKLayers(Method):
    """The `k` uppermost layers and what follows them move (Houlsby et al., arXiv 1902.00751, "variable fine-tuning").

    Of encoder and decoder those of each; embeddings stay even where the head is tied to them. Weights that layers share
    belong to the lowest of them. Raises UserError for a `k` below 1.
    """

    k: int
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UserError(
                f"finetune.method.k={self.k} trains no layer", "give 1 or more, or use finetune/method=frozen"
            )

    def check(self, layers: int) -> None:
        if self.k > layers:
            raise UserError(f"finetune.method.k={self.k} exceeds the model's {layers} layers", "give at most so many")

    def shape(self, encoder: Network, seed: int) -> None:
        for name, parameter in encoder.named_parameters():
            parameter.requires_grad_(encoder.depth_of(name) > encoder.depth - self.k)
