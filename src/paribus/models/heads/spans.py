"""The head that finds a span."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from paribus.models.encoder import Outputs


class SpanHead(nn.Module):
    """A score of each token for being the first, and one for being the last of the answer (BERT, section 4.2).

    Reads `label_B`, [B, 2]; its loss is a sum over rows of the mean of both, to be divided by "rows".
    """

    per = "rows"

    def __init__(self, width: int) -> None:
        super().__init__()
        self.edges = nn.Linear(width, 2)

    def logits(self, outputs: Outputs, batch: dict[str, Any]) -> Tensor:
        """[B, L, 2]; padding has the lowest score there is."""
        logits_BL2: Tensor = self.edges(outputs.hidden_BLD).float()
        column_L = torch.arange(logits_BL2.shape[1], device=logits_BL2.device)
        padding_BL = column_L >= batch["length_B"][:, None]
        return logits_BL2.masked_fill(padding_BL[..., None], torch.finfo(logits_BL2.dtype).min)

    def forward(self, outputs: Outputs, batch: dict[str, Any]) -> Tensor:
        """The sum of the rows' cross-entropies, in nats."""
        return cross_entropy(self.logits(outputs, batch), batch["label_B"], reduction="sum") / 2
