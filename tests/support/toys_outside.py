"""A network with weights outside its backbone, running statistics among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from toys import Table, WordVectors

from paribus.models.network import Batch, Network, Outputs, initialize
from paribus.objectives.mlm import MaskedLM
from paribus.objectives.objective import Objective


@dataclass(frozen=True)
class Normed(WordVectors):
    """Word vectors, normalized over the batch and mixed by an LSTM with dropout."""

    def build(self, vocabulary: Any, seed: int) -> Network:
        network = NormedTable(self, vocabulary)
        initialize(network, seed, network.std)
        return network


class NormedTable(Table):
    def __init__(self, spec: Normed, vocabulary: Any) -> None:
        super().__init__(spec, vocabulary)
        self.batch_norm = nn.BatchNorm1d(spec.hidden)
        self.shift_D = nn.Parameter(torch.zeros(spec.hidden))
        self.lstm = nn.LSTM(spec.hidden, spec.hidden, 2, batch_first=True, dropout=0.5)
        self.drop = nn.Dropout1d(0.5)

    def forward(self, batch: Batch, state: Any = None) -> Outputs:
        hidden_BLD = super().forward(batch).hidden_BLD
        normed_BLD = self.batch_norm(hidden_BLD.flatten(0, 1)).view_as(hidden_BLD) + self.shift_D
        mixed_BLD = self.lstm(self.drop(normed_BLD))[0]
        return Outputs(mixed_BLD, None, self.summarize(mixed_BLD, batch))


@dataclass(frozen=True)
class Tempered(MaskedLM):
    """A weight that belongs to the objective itself, which has no name in a checkpoint."""

    def compose(self, network: Network, vocabulary: Any) -> Objective:
        objective = super().compose(network, vocabulary)
        objective.temperature = nn.Parameter(torch.ones(()))
        return objective
