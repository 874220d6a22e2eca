"""Layers that begin to move one after the other, from the top."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from paribus.core.errors import UserError
from paribus.finetuning.method import Method

if TYPE_CHECKING:
    from paribus.models.network import Network


@dataclass(frozen=True)
class GradualUnfreezing(Method):
    """First the top layer and the head move, then one layer more in each of equal pieces, the embeddings last.

    ULMFiT (arXiv 1801.06146, section 3.3) adds a layer an epoch, T5 (arXiv 1910.10683, section 3.5.1) one in each of as
    many pieces as there are layers, in encoder and decoder in parallel; word embeddings to which the head is tied move
    throughout. `spread` is the share of fine-tuning after which everything moves. Below the top layer each has `decay`
    times the rate of the one above (ULMFiT's discriminative fine-tuning, section 3.2: 1 / 2.6).
    Raises UserError for a share or a decay outside (0, 1].
    """

    spread: float = 1.0
    decay: float = 1.0
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not 0 < self.spread <= 1:
            raise UserError(
                f"finetune.method.spread={self.spread} is outside (0, 1]", "give a share of the fine-tuning"
            )
        if not 0 < self.decay <= 1:
            raise UserError(
                f"finetune.method.decay={self.decay} is outside (0, 1]", "give a factor a layer, such as 0.385"
            )

    def rate(self, encoder: Network, name: str) -> float:
        return float(self.decay ** (encoder.depth - encoder.depth_of(name)))

    def lowest(self, layers: int, done: float, last: int = 0) -> int:
        """The lowest depth that moves (0: embeddings, i + 1: layer i) once the share `done` is over.

        `last` is the depth that is opened last.
        """
        return max(last, layers - int(done / self.spread * (layers + 1 - last)))

    def open(self, encoder: Network, done: float) -> None:
        throughout = encoder.head_weights
        lowest = self.lowest(encoder.depth, done, 1 if throughout else 0)
        for name, parameter in encoder.named_parameters():
            parameter.requires_grad_(encoder.depth_of(name) >= lowest or name in throughout)
