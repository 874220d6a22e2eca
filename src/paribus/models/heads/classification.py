"""The classifier on a whole row."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from paribus.models.encoder import Encoder, Outputs
from paribus.models.heads.loss import Loss, RowLoss
from paribus.models.heads.wrapper import Wide


class ClassificationHead(nn.Module):
    """tanh pooler of what stands for the row ([CLS]), dropout, linear (BERT, section 4.1).

    Its loss is a sum, to be divided by "rows".
    """

    per = "rows"

    def __init__(self, encoder: Encoder | Wide, classes: int, dropout: float, loss: RowLoss | None = None) -> None:
        super().__init__()
        self.pooler = nn.Linear(encoder.width, encoder.width)
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(encoder.width, classes)
        self.loss: RowLoss = loss or Loss()

    def logits(self, outputs: Outputs, batch: dict[str, Any]) -> Tensor:
        """[B, classes]."""
        pooled_BD = self.pooler(outputs.row_BD).tanh()
        logits: Tensor = self.classifier(self.dropout(pooled_BD))
        return logits

    def forward(self, outputs: Outputs, batch: dict[str, Any]) -> Tensor:
        """The sum of the rows' losses."""
        return self.loss(self.logits(outputs, batch).float(), batch["label_B"])
