"""Feature extraction: the encoder stays as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from paribus.finetuning.method import Method

if TYPE_CHECKING:
    from paribus.models.network import Network


@dataclass(frozen=True)
class Frozen(Method):
    """Only the head is trained, on states without dropout (BERT, arXiv 1810.04805, section 5.3).

    Which states a head on an encoder reads is `finetune.layers` and `finetune.combine`. Of a model that writes the head
    must be a matrix of its own.
    """

    semantics: ClassVar[int] = 1
    moves: ClassVar[bool] = False

    def shape(self, encoder: Network, seed: int) -> None:
        encoder.requires_grad_(False)
        encoder.silence()
