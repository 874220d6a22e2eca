"""Feature extraction: the encoder stays as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ceteris.finetuning.method import Method

if TYPE_CHECKING:
    from ceteris.models.encoder import Encoder


@dataclass(frozen=True)
class Frozen(Method):
    """Only the head is trained, on states without dropout (BERT, arXiv 1810.04805, section 5.3).

    Which states it reads is `finetune.layers` and `finetune.combine`.
    """

    semantics: ClassVar[int] = 1
    writes: ClassVar[bool] = False

    def shape(self, encoder: Encoder, seed: int) -> None:
        from torch import nn

        encoder.requires_grad_(False)
        for module in encoder.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
