"""What stands for a text that is read in windows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from paribus.models.encoder import Outputs
from paribus.models.heads.wrapper import Wrapper

POOLED = ("max", "mean", "attention", "transformer")
HEAD_WIDTH = 64  # of the transformer over windows


def gathered(row_WD: Tensor, place_BK: Tensor) -> tuple[Tensor, Tensor]:
    """([B, K, D] the rows of each example, [B, K, 1] which of them there are)."""
    return row_WD[place_BK.clamp_min(0)], (place_BK >= 0)[..., None]


class OnWindows(Wrapper):
    """Any head, on what is made of the summaries of a text's windows.

    Their largest values, their mean, a sum weighted by a learned query, v tanh(U x), as in hierarchical attention
    (Sun et al., arXiv 1905.05583, section 5.3.1), or the mean after one transformer layer over them with learned
    positions (Pappagari et al., arXiv 1910.10781).
    """

    def __init__(self, kind: str, width: int, most: int, head: Any) -> None:
        super().__init__(head)
        self.kind = kind
        if kind == "attention":
            self.key, self.query = nn.Linear(width, width), nn.Linear(width, 1, bias=False)
        elif kind == "transformer":
            heads = max(1, width // HEAD_WIDTH)
            self.position = nn.Embedding(most, width)
            self.layer = nn.TransformerEncoderLayer(width, heads, 4 * width, activation="gelu", batch_first=True)

    def read(self, outputs: Outputs, batch: dict[str, Any]) -> Outputs:
        """The same states with another summary."""
        row_BKD, real_BK1 = gathered(outputs.row_BD, batch["place_BK"])
        if self.kind == "max":
            row_BD = row_BKD.masked_fill(~real_BK1, float("-inf")).amax(1)
        elif self.kind == "attention":
            score_BK1 = self.query(self.key(row_BKD).tanh()).masked_fill(~real_BK1, float("-inf"))
            row_BD = (score_BK1.softmax(1) * row_BKD).sum(1)
        else:
            if self.kind == "transformer":
                place_K = torch.arange(row_BKD.shape[1], device=row_BKD.device)
                row_BKD = self.layer(row_BKD + self.position(place_K), src_key_padding_mask=~real_BK1[..., 0])
            row_BD = (row_BKD * real_BK1).sum(1) / real_BK1.sum(1)
        return Outputs(outputs.hidden_BLD, outputs.state, row_BD)
