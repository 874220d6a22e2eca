"""The stochastic answer network on a pair of texts in one row (MT-DNN, arXiv 1901.11504, section 3; 1804.07888)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from paribus.models.heads.head import Head
from paribus.models.heads.loss import RowLoss
from paribus.models.network import Batch, Outputs


class AnswerHead(Head):
    """Several turns over the rest of the row refine a summary of the second text; their answers are averaged.

    The first summary is an attention-weighted sum of the second text's states. A turn reads the first text
    by bilinear attention, scores the classes from both vectors, their difference and product, and a GRU updates the
    summary. In training a turn is left out with the probability `drop`, but one is always kept. Reads `part_BL` and
    `label_B`.
    """

    denominator = "rows"

    def __init__(self, width: int, classes: int, turns: int, drop: float, dropout: float, loss: RowLoss) -> None:
        super().__init__()
        self.turns, self.drop, self.dropout = turns, drop, dropout
        self.summary = nn.Linear(width, 1)
        self.attention = nn.Linear(width, width, bias=False)
        self.classifier = nn.Linear(4 * width, classes)
        self.gru = nn.GRUCell(width, width)
        self.loss: RowLoss = loss

    @property
    def std(self) -> float:
        """Standard deviation of the initial weights of the GRU: that of PyTorch's own."""
        return float((3 * self.gru.hidden_size) ** -0.5)

    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        """[B, classes]: the logarithm of the mean of the turns' probabilities."""
        with torch.autocast(outputs.hidden_BLD.device.type, enabled=False):
            share_KBC = self._turn(outputs.hidden_BLD.float(), batch).softmax(-1)
        kept_KB = self._keep(share_KBC)
        return mean_of_turns(share_KBC, kept_KB).log()

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        return self.loss(self.logits(outputs, batch), batch["label_B"])

    def _turn(self, hidden_BLD: Tensor, batch: Batch) -> Tensor:
        """[K, B, classes]: the scores of each turn."""
        column_L = torch.arange(hidden_BLD.shape[1], device=hidden_BLD.device)
        second_BL = (batch["part_BL"] == 1) & (column_L < batch["length_B"][:, None])
        first_BL = (batch["part_BL"] == 0) & (column_L < batch["length_B"][:, None])
        hidden_BLD = dropout(hidden_BLD, self.dropout, self.training)
        state_BD = _weigh(self.summary(hidden_BLD).squeeze(-1), second_BL, hidden_BLD)
        found = []
        for _ in range(self.turns):
            score_BL = torch.einsum("bd,bld->bl", self.attention(state_BD), hidden_BLD)
            read_BD = _weigh(score_BL, first_BL, hidden_BLD)
            parts = [state_BD, read_BD, (state_BD - read_BD).abs(), state_BD * read_BD]
            found.append(self.classifier(dropout(torch.cat(parts, -1), self.dropout, self.training)))
            state_BD = self.gru(read_BD, state_BD)
        return torch.stack(found)

    def _keep(self, share_KBC: Tensor) -> Tensor:
        """bool [K, B]: the turns whose answers count."""
        kept_KB = torch.ones(share_KBC.shape[:2], dtype=torch.bool, device=share_KBC.device)
        if self.training and self.drop:
            kept_KB = torch.rand(kept_KB.shape, device=kept_KB.device) >= self.drop
            one_B = torch.randint(self.turns, kept_KB.shape[1:], device=kept_KB.device)
            kept_KB[one_B, torch.arange(len(one_B), device=one_B.device)] = True
        return kept_KB


def mean_of_turns(share_KBC: Tensor, kept_KB: Tensor) -> Tensor:
    """[B, classes]: the mean over the turns that are kept."""
    return (share_KBC * kept_KB[..., None]).sum(0) / kept_KB.sum(0)[:, None]


def _weigh(score_BL: Tensor, read_BL: Tensor, hidden_BLD: Tensor) -> Tensor:
    """[B, D]: the sum of the states that are read, weighted by the softmax of their scores."""
    weight_BL = score_BL.masked_fill(~read_BL, torch.finfo(score_BL.dtype).min).softmax(-1)
    return torch.einsum("bl,bld->bd", weight_BL, hidden_BLD)
