"""Layers that begin to move one after the other, from the top."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ceteris.errors import UserError
from ceteris.finetuning.method import Method

if TYPE_CHECKING:
    from ceteris.models.encoder import Encoder


@dataclass(frozen=True)
class GradualUnfreezing(Method):
    """First the top layer and the head move, then one layer more in each of equal pieces, the embeddings last.

    ULMFiT (arXiv 1801.06146, section 3.3) adds a layer an epoch, T5 (arXiv 1910.10683, section 3.5.1) one in each of as
    many pieces as there are layers. `spread` is the share of fine-tuning after which everything moves.
    Raises UserError for a share outside (0, 1].
    """

    spread: float = 1.0
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not 0 < self.spread <= 1:
            raise UserError(f"finetuning.spread={self.spread} is outside (0, 1]", "give a share of the fine-tuning")

    def lowest(self, layers: int, done: float) -> int:
        """The lowest depth that moves (0: embeddings, i + 1: layer i) once the share `done` is over."""
        return max(0, layers - int(done / self.spread * (layers + 1)))

    def open(self, encoder: Encoder, done: float) -> None:
        lowest = self.lowest(encoder.depth, done)
        for name, parameter in encoder.named_parameters():
            parameter.requires_grad_(encoder.depth_of(name) >= lowest)
