"""The masked-LM head, on predicted positions only."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear

from paribus.models.encoder import Encoder, Outputs
from paribus.models.heads.cross_entropy import summed_cross_entropy


class MaskedLMHead(nn.Module):
    """dense, GELU, LayerNorm, the tied word embeddings, an output bias (BERT, `run_pretraining.py`).

    The dense layer leads to the width of the embeddings, where that is another one (ALBERT, `run_pretraining.py`).
    Of a left-to-right LM too, whose targets stand one place to the right of where they are read off.
    Reads `slot_P` (flat positions in [B, L]) and `target_P`; its loss is a sum, to be divided by "predicted".
    """

    per = "predicted"

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self._encoder = [encoder]  # held, not registered: its parameters belong to the encoder
        words, width = encoder.table_VD.shape
        self.dense = nn.Linear(encoder.width, width)
        self.norm = nn.LayerNorm(width, eps=encoder.backbone.config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(words))

    def logits(self, outputs: Outputs, batch: dict[str, Any]) -> Tensor:
        """[P, V] for the P predicted positions."""
        hidden_PD = outputs.hidden_BLD.flatten(0, 1).index_select(0, batch["slot_P"])
        return linear(self.norm(gelu(self.dense(hidden_PD))), self._encoder[0].table_VD, self.bias)

    def forward(self, outputs: Outputs, batch: dict[str, Any]) -> Tensor:
        """The sum of the cross-entropies, in nats."""
        return summed_cross_entropy(self.logits(outputs, batch), batch["target_P"])
