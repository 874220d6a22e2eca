"""Heads on a whole row."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from paribus.models.heads.head import Head
from paribus.models.heads.loss import Loss, RowLoss
from paribus.models.network import Batch, Outputs


class ClassificationHead(Head):
    """tanh pooler of what summarizes the row ([CLS]), dropout, linear (BERT, section 4.1). Reads `label_B`."""

    denominator = "rows"

    def __init__(self, width: int, classes: int, dropout: float, loss: RowLoss | None = None) -> None:
        super().__init__()
        self.pooler = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(width, classes)
        self.loss: RowLoss = loss or Loss()

    def reads(self, batch: Batch) -> list[Tensor] | None:
        return []

    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        """[B, classes]."""
        pooled_BD = self.pooler(outputs.row_BD).tanh()
        logits: Tensor = self.classifier(self.dropout(pooled_BD))
        return logits

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        return self.loss(self.logits(outputs, batch).float(), batch["label_B"])


class LinearHead(Head):
    """Dropout and a linear layer on what summarizes the row (GPT-1, Radford et al. 2018, section 3.2). Reads `label_B`.

    All rows of an example lose the same parts of their summaries (GPT-1, `train.py`).
    """

    denominator = "rows"

    def __init__(self, width: int, classes: int, dropout: float, loss: RowLoss) -> None:
        super().__init__()
        self.dropout = nn.Dropout1d(dropout)
        self.classifier, self.loss = nn.Linear(width, classes), loss

    def reads(self, batch: Batch) -> list[Tensor] | None:
        return []

    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        """[B, classes]."""
        row = outputs.row_BD
        row_BDK = row.view(len(row), -1, row.shape[-1]).transpose(1, 2)
        logits: Tensor = self.classifier(self.dropout(row_BDK).transpose(1, 2).reshape(row.shape))
        return logits

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        return self.loss(self.logits(outputs, batch).float(), batch["label_B"])


class PairHead(Head):
    """How the segments of a pair follow each other: linear on the tanh pooler of what summarizes the row (BERT,
    `run_pretraining.py`; ALBERT's is the same), 2-way or of more kinds. Reads `label_N`, 0 if B follows A.
    """

    denominator = "pairs"

    def __init__(self, width: int, kinds: int = 2) -> None:
        super().__init__()
        self.kinds = kinds
        self.pooler = nn.Linear(width, width)
        self.classifier = nn.Linear(width, kinds)

    def reads(self, batch: Batch) -> list[Tensor] | None:
        return []

    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        """[B, kinds]."""
        logits: Tensor = self.classifier(self.pooler(outputs.row_BD).tanh())
        return logits

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        return cross_entropy(self.logits(outputs, batch).float(), batch["label_N"], reduction="sum")
