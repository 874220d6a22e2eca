"""Heads that answer about a whole row, or about two texts.

Classifiers on what summarizes a row; heads on the embeddings of two texts that are read separately (Sentence-BERT,
arXiv 1908.10084, section 3); the stochastic answer network on two texts in one row (MT-DNN, arXiv 1901.11504, section
3; 1804.07888).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, cross_entropy, dropout

from paribus.models.heads.head import Head, Loss, RowLoss, Wrapper
from paribus.models.heads.wrappers import gather_rows
from paribus.models.network import Batch, Outputs, find_real

PARTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "u": lambda u_BD, v_BD: u_BD,
    "v": lambda u_BD, v_BD: v_BD,
    "difference": lambda u_BD, v_BD: (u_BD - v_BD).abs(),
    "product": lambda u_BD, v_BD: u_BD * v_BD,
}


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


class OnPairs(Wrapper):
    """A classifier on parts of two embeddings, side by side (section 3.1).

    With `by_cosine` it is used only in training, and the cosine of the embeddings is the answer.
    """

    def __init__(self, parts: Sequence[str], by_cosine: bool, head: Head) -> None:
        super().__init__(head)
        self.parts, self.by_cosine = tuple(parts), by_cosine

    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        """[B, classes], or the cosines, [B, 1]."""
        return cosines(outputs.row_BD, batch)[:, None] if self.by_cosine else super().logits(outputs, batch)

    def read(self, outputs: Outputs, batch: Batch) -> Outputs:
        row_B2D, _ = gather_rows(outputs.row_BD, batch["place_BK"])
        row_BD = torch.cat([PARTS[part](row_B2D[:, 0], row_B2D[:, 1]) for part in self.parts], dim=-1)
        return Outputs(outputs.hidden_BLD, outputs.state, row_BD)


class Cosine(Head):
    """The cosine of two embeddings, by the squared error to a label between 0 and 1 (section 3.1). No weights."""

    denominator = "rows"

    def __init__(self, least: float, most: float) -> None:
        super().__init__()
        self.least, self.most = least, most

    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        """[B, 1]."""
        return cosines(outputs.row_BD, batch)[:, None]

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        target_B = (batch["label_B"].float() - self.least) / (self.most - self.least)
        wrong_B: Tensor = self.logits(outputs, batch)[:, 0].float() - target_B
        return wrong_B.square().sum()


def cosines(row_WD: Tensor, batch: Batch) -> Tensor:
    """[B]: the cosine of the two embeddings of each example."""
    row_B2D, _ = gather_rows(row_WD, batch["place_BK"])
    return cosine_similarity(row_B2D[:, 0], row_B2D[:, 1])


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
            share_KBC = self._take_turns(outputs.hidden_BLD.float(), batch).softmax(-1)
        return mean_of_turns(share_KBC, self._keep(share_KBC)).log()

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        return self.loss(self.logits(outputs, batch), batch["label_B"])

    def _take_turns(self, hidden_BLD: Tensor, batch: Batch) -> Tensor:
        """[K, B, classes]: the scores of each turn."""
        real_BL = find_real(batch["length_B"], hidden_BLD.shape[1])
        first_BL, second_BL = (real_BL & (batch["part_BL"] == part) for part in (0, 1))
        hidden_BLD = dropout(hidden_BLD, self.dropout, self.training)
        state_BD = _weigh(self.summary(hidden_BLD).squeeze(-1), second_BL, hidden_BLD)
        scores = []
        for _ in range(self.turns):
            score_BL = torch.einsum("bd,bld->bl", self.attention(state_BD), hidden_BLD)
            read_BD = _weigh(score_BL, first_BL, hidden_BLD)
            parts = [state_BD, read_BD, (state_BD - read_BD).abs(), state_BD * read_BD]
            scores.append(self.classifier(dropout(torch.cat(parts, -1), self.dropout, self.training)))
            state_BD = self.gru(read_BD, state_BD)
        return torch.stack(scores)

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
