"""One layer at a time, from the bottom, then all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from paribus.finetuning.method import Method

if TYPE_CHECKING:
    from torch import nn

    from paribus.models.network import Network

HEAD = -1  # the stage in which the head alone moves


@dataclass(frozen=True)
class ChainThaw(Method):
    """First the new head moves alone, then the embeddings, then each layer alone from the bottom, at last everything.

    Felbo et al. (arXiv 1708.00524, section 3.3), a row of ULMFiT's table 7 (arXiv 1801.06146, section 5). They end a
    stage where the validation loss no longer falls; here stages are equal pieces, so that every method has the same
    number of steps. What follows the last layer moves with it; word embeddings to which a head is tied are the head.
    """

    semantics: ClassVar[int] = 1

    def stage(self, layers: int, done: float) -> int:
        """What moves once the share `done` is over: HEAD, a depth (0: embeddings, i + 1: layer i), layers + 1: all."""
        return min(HEAD + int(done * (layers + 3)), layers + 1)

    def open(self, encoder: Network, done: float) -> None:
        stage = self.stage(encoder.depth, done)
        for name, parameter in encoder.named_parameters():
            own = HEAD if stage == HEAD and name in encoder.head_weights else encoder.depth_of(name)
            parameter.requires_grad_(stage in (own, encoder.depth + 1))

    def open_head(self, head: nn.Module, layers: int, done: float) -> None:
        head.requires_grad_(self.stage(layers, done) in (HEAD, layers + 1))
