"""The head that tags words."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from paribus.models.encoder import Outputs
from paribus.models.heads.loss import Loss


class TaggingHead(nn.Module):
    """Dropout and a linear layer on every token (BERT, section 5.3).

    Reads `tag_BL`, negative where no word starts; its loss is a sum, to be divided by "words".
    """

    per = "words"

    def __init__(self, width: int, classes: int, dropout: float, loss: Loss | None = None) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(width, classes)
        self.loss = loss or Loss()

    def logits(self, outputs: Outputs, batch: dict[str, Any]) -> Tensor:
        """[B, L, classes]."""
        logits_BLC: Tensor = self.classifier(self.dropout(outputs.hidden_BLD))
        return logits_BLC

    def forward(self, outputs: Outputs, batch: dict[str, Any]) -> Tensor:
        """The sum of the words' losses."""
        first_BL = batch["tag_BL"] >= 0
        return self.loss(self.logits(outputs, batch)[first_BL].float(), batch["tag_BL"][first_BL])

    def answer(self, outputs: Outputs, batch: dict[str, Any]) -> Tensor:
        """[B, L]: the best tag of each token; it counts where a word starts."""
        return self.logits(outputs, batch).argmax(-1)
