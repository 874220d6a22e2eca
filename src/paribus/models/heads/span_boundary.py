"""The span-boundary head: the tokens of a span from the two states around it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear

from paribus.models.encoder import Encoder, Outputs
from paribus.models.heads.cross_entropy import summed_cross_entropy


class SpanBoundaryHead(nn.Module):
    """Two layers, each with GELU and LayerNorm, the tied word embeddings, an output bias of its own (SpanBERT, section
    3.2), on the states beside the span and an embedding, of width `place`, of the place in it, one of `most`.

    Reads `left_S`, `right_S` (flat positions in [B, L]), `place_S` and `inside_S`, the target; its loss is a sum, to be
    divided by "boundary" + `plus`.
    """

    per = "boundary"
    plus = 1  # to the count, as in SpanBERT's `spanbert_loss.py`

    def __init__(self, encoder: Encoder, most: int, place: int) -> None:
        super().__init__()
        self._encoder = [encoder]  # held, not registered: its parameters belong to the encoder
        (words, width), eps = encoder.table_VD.shape, encoder.backbone.config.layer_norm_eps
        self.place = nn.Embedding(most, place)
        self.first = nn.Linear(2 * encoder.width + place, encoder.width)
        self.first_norm = nn.LayerNorm(encoder.width, eps=eps)
        self.second = nn.Linear(encoder.width, width)
        self.second_norm = nn.LayerNorm(width, eps=eps)
        self.bias = nn.Parameter(torch.zeros(words))

    def logits(self, outputs: Outputs, batch: dict[str, Any]) -> Tensor:
        """[S, V] for the S tokens of spans."""
        hidden_ND = outputs.hidden_BLD.flatten(0, 1)
        beside = [hidden_ND.index_select(0, batch[side]) for side in ("left_S", "right_S")]
        read_SE = torch.cat([*beside, self.place(batch["place_S"])], dim=-1)
        first_SD = self.first_norm(gelu(self.first(read_SE)))
        return linear(self.second_norm(gelu(self.second(first_SD))), self._encoder[0].table_VD, self.bias)

    def forward(self, outputs: Outputs, batch: dict[str, Any]) -> Tensor:
        """The sum of the cross-entropies, in nats; 0 where no span has a boundary."""
        return summed_cross_entropy(self.logits(outputs, batch), batch["inside_S"])
