"""The head on a pair: how do its segments follow each other."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from paribus.models.encoder import Encoder, Outputs


class PairHead(nn.Module):
    """Linear on the tanh pooler of [CLS], 2-way (BERT, `run_pretraining.py`; ALBERT's is the same) or of more kinds.

    Where something else stands for the row it reads that.
    Reads `label_N`, 0 where B follows A; its loss is a sum, to be divided by "pairs".
    """

    per = "pairs"

    def __init__(self, encoder: Encoder, kinds: int = 2) -> None:
        super().__init__()
        self.kinds = kinds
        self.pooler = nn.Linear(encoder.width, encoder.width)
        self.classifier = nn.Linear(encoder.width, kinds)

    def logits(self, outputs: Outputs, batch: dict[str, Any]) -> Tensor:
        """[B, kinds]."""
        logits: Tensor = self.classifier(self.pooler(outputs.row_BD).tanh())
        return logits

    def forward(self, outputs: Outputs, batch: dict[str, Any]) -> Tensor:
        """The sum of the cross-entropies, in nats."""
        return cross_entropy(self.logits(outputs, batch).float(), batch["label_N"], reduction="sum")
