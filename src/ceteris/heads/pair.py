"""The head on a pair: does B follow A."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ceteris.models.encoder import Encoder, Outputs


class PairHead(nn.Module):
    """2-way linear on the tanh pooler of [CLS], or what stands for the row (BERT, `run_pretraining.py`; ALBERT's too).

    Reads `label_N`, 0 where B follows A; its loss is a sum, to be divided by "pairs".
    """

    per = "pairs"

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.pooler = nn.Linear(encoder.width, encoder.width)
        self.classifier = nn.Linear(encoder.width, 2)

    def logits(self, outputs: Outputs, batch: dict[str, Any]) -> Tensor:
        """[B, 2]."""
        logits_B2: Tensor = self.classifier(self.pooler(outputs.row_BD).tanh())
        return logits_B2

    def forward(self, outputs: Outputs, batch: dict[str, Any]) -> Tensor:
        """The sum of the cross-entropies, in nats."""
        return cross_entropy(self.logits(outputs, batch).float(), batch["label_N"], reduction="sum")
