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

    `finetune/head/layers` says which states a head on an encoder reads. A model that writes needs a separate head.
    """

    semantics: ClassVar[int] = 1
    moves: ClassVar[bool] = False

    def shape(self, encoder: Network, seed: int) -> None:
        encoder.requires_grad_(False)
        encoder.silence()
