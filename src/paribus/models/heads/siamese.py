"""Two texts, each read separately (Sentence-BERT, arXiv 1908.10084, section 3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from paribus.models.heads.head import Head, Wrapper
from paribus.models.heads.wrappers import gather_rows
from paribus.models.network import Batch, Outputs

PARTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "u": lambda u_BD, v_BD: u_BD,
    "v": lambda u_BD, v_BD: v_BD,
    "difference": lambda u_BD, v_BD: (u_BD - v_BD).abs(),
    "product": lambda u_BD, v_BD: u_BD * v_BD,
}


def cosines(row_WD: Tensor, batch: Batch) -> Tensor:
    """[B]: the cosine of the two embeddings of each example."""
    row_B2D, _ = gather_rows(row_WD, batch["place_BK"])
    return cosine_similarity(row_B2D[:, 0], row_B2D[:, 1])


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
