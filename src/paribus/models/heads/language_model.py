"""The language-model head of a model that writes, on predicted positions only."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from paribus.models.encoder import Outputs
from paribus.models.heads.cross_entropy import summed_cross_entropy
from paribus.models.text_to_text import TextToText


class LanguageModelHead(nn.Module):
    """The tied word embeddings on states scaled by 1 / sqrt(width), or a matrix of its own (T5, section 2.1; T5 v1.1).

    Reads `slot_P` (flat positions in what is written) and `target_P`; its loss is a sum, to be divided by "predicted".
    """

    per = "predicted"

    def __init__(self, model: TextToText) -> None:
        super().__init__()
        self._model = [model]  # held, not registered: its parameters belong to the model
        separate = model.spec.head == "separate"
        self.weight = nn.Parameter(torch.zeros_like(model.table_VD)) if separate else None

    def scores(self, hidden_PD: Tensor) -> Tensor:
        """[P, V] for states [P, D]."""
        model = self._model[0]
        if self.weight is not None:
            return linear(hidden_PD, self.weight)
        return linear(hidden_PD * model.width**-0.5, model.table_VD)

    def logits(self, outputs: Outputs, batch: dict[str, Any]) -> Tensor:
        """[P, V] for the P predicted positions."""
        return self.scores(outputs.hidden_BLD.flatten(0, 1).index_select(0, batch["slot_P"]))

    def forward(self, outputs: Outputs, batch: dict[str, Any]) -> Tensor:
        """The sum of the cross-entropies, in nats."""
        return summed_cross_entropy(self.logits(outputs, batch), batch["target_P"])
