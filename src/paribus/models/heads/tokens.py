"""Heads on every token: tags of words, and the span of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from paribus.models.heads.head import Head, Loss
from paribus.models.network import Batch, Outputs, find_real


class SpanHead(Head):
    """A score of each token for being the first, and one for being the last of the answer (BERT, section 4.2).

    Reads `label_B`, [B, 2]; the loss of a row is the mean of both cross-entropies.
    """

    denominator = "rows"

    def __init__(self, width: int) -> None:
        super().__init__()
        self.edges = nn.Linear(width, 2)

    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        """[B, L, 2]; padding has the lowest score there is."""
        logits_BL2: Tensor = self.edges(outputs.hidden_BLD).float()
        return logits_BL2.masked_fill(
            ~find_real(batch["length_B"], logits_BL2.shape[1])[..., None], torch.finfo(logits_BL2.dtype).min
        )

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        return cross_entropy(self.logits(outputs, batch), batch["label_B"], reduction="sum") / 2


class TaggingHead(Head):
    """Dropout and a linear layer on every token (BERT, section 5.3). Reads `tag_BL`, negative if no word starts there.

    Predictions count only where a word starts.
    """

    denominator = "words"

    def __init__(self, width: int, classes: int, dropout: float, loss: Loss | None = None) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(width, classes)
        self.loss = loss or Loss()

    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        """[B, L, classes]."""
        logits_BLC: Tensor = self.classifier(self.dropout(outputs.hidden_BLD))
        return logits_BLC

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        first_BL = batch["tag_BL"] >= 0
        return self.loss(self.logits(outputs, batch)[first_BL].float(), batch["tag_BL"][first_BL])


class CRFHead(TaggingHead):
    """A linear-chain conditional random field over the words of a row (Lafferty et al. 2001): the tagging head's
    scores, and a score for each tag that follows another, that begins and that ends a row.

    Its loss is the negative log likelihood of the rows' tags, its answer their best path.
    """

    initial_values: ClassVar[Mapping[str, float]] = {"begin_C": 0.0, "end_C": 0.0}

    def __init__(self, width: int, classes: int, dropout: float) -> None:
        super().__init__(width, classes, dropout)
        self.follow_CC = nn.Parameter(torch.zeros(classes, classes))  # [before, after]
        self.begin_C = nn.Parameter(torch.zeros(classes))
        self.end_C = nn.Parameter(torch.zeros(classes))

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        score_BWC, place_BW, real_BW = self._words(outputs, batch)
        tag_BW = batch["tag_BL"].gather(1, place_BW).clamp(min=0)
        return (self.log_sum(score_BWC, real_BW) - self.path_score(score_BWC, tag_BW, real_BW)).sum()

    def answer(self, outputs: Outputs, batch: Batch) -> Tensor:
        """[B, L]: the tags of the best path at word starts, 0 elsewhere."""
        score_BWC, place_BW, real_BW = self._words(outputs, batch)
        tag_BW = self.best_path(score_BWC, real_BW) * real_BW
        return torch.zeros_like(batch["tag_BL"]).scatter_add(1, place_BW, tag_BW)

    def path_score(self, score_BWC: Tensor, tag_BW: Tensor, real_BW: Tensor) -> Tensor:
        """[B]: the score of given paths; only the first words are real, 0 of none."""
        tag_score_BW = score_BWC.gather(2, tag_BW[..., None])[..., 0]
        follow_BW = self.follow_CC[tag_BW[:, :-1], tag_BW[:, 1:]]
        last_B1 = (real_BW.sum(1, keepdim=True) - 1).clamp(min=0)
        ends_B = self.begin_C[tag_BW[:, 0]] + self.end_C[tag_BW.gather(1, last_B1)[:, 0]]
        return ((tag_score_BW * real_BW).sum(1) + (follow_BW * real_BW[:, 1:]).sum(1) + ends_B) * real_BW[:, 0]

    def log_sum(self, score_BWC: Tensor, real_BW: Tensor) -> Tensor:
        """[B]: the log of the sum of the exponentials of all paths' scores; 0 of no word."""
        alpha_BC = self.begin_C + score_BWC[:, 0]
        for at in range(1, score_BWC.shape[1]):
            next_BC = (alpha_BC[:, :, None] + self.follow_CC).logsumexp(1) + score_BWC[:, at]
            alpha_BC = torch.where(real_BW[:, at, None], next_BC, alpha_BC)
        return (alpha_BC + self.end_C).logsumexp(1) * real_BW[:, 0]

    def best_path(self, score_BWC: Tensor, real_BW: Tensor) -> Tensor:
        """[B, W]: the path of the highest score (Viterbi); what is not real repeats the last tag."""
        best_BC = self.begin_C + score_BWC[:, 0]
        stay_C = torch.arange(len(self.end_C), device=best_BC.device).expand_as(best_BC)
        came = []
        for at in range(1, score_BWC.shape[1]):
            value_BC, from_BC = (best_BC[:, :, None] + self.follow_CC).max(1)
            real_B1 = real_BW[:, at, None]
            best_BC = torch.where(real_B1, value_BC + score_BWC[:, at], best_BC)
            came.append(torch.where(real_B1, from_BC, stay_C))
        tags = [(best_BC + self.end_C).argmax(1)]
        for from_BC in reversed(came):
            tags.append(from_BC.gather(1, tags[-1][:, None])[:, 0])
        return torch.stack(tags[::-1], 1)

    def _words(self, outputs: Outputs, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """The scores of first pieces side by side [B, W, C], their places in the row and which of them are real."""
        first_BL = batch["tag_BL"] >= 0
        width = max(1, int(first_BL.sum(1).max()))
        place_BW = (~first_BL).int().argsort(dim=1, stable=True)[:, :width]
        score_BLC = self.logits(outputs, batch).float()
        score_BWC = score_BLC.gather(1, place_BW[..., None].expand(-1, -1, score_BLC.shape[2]))
        return score_BWC, place_BW, first_BL.gather(1, place_BW)
