"""A network without attention that gives its own layers; nothing in the package names it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from paribus.models.network import Batch, Network, Outputs, initialize
from paribus.models.spec import ModelSpec


@dataclass(frozen=True)
class Neighbors(ModelSpec):
    """Word vectors, to which each layer adds those to the left and right."""

    hidden: int
    layers: int = 2
    semantics: ClassVar[int] = 1

    def build(self, vocabulary: Any, seed: int) -> Network:
        network = Mixer(self, vocabulary)
        initialize(network, seed, network.std)
        return network

    def forward_flops(self, tokens: float, length: float, written: float = 0.0, rows: float = 0.0) -> float:
        return 2.0 * tokens * self.layers * self.hidden**2


class Mixer(Network):
    """A row is summarized by the mean of its states."""

    gives_layers = True

    def __init__(self, spec: Neighbors, vocabulary: Any) -> None:
        super().__init__(spec, vocabulary, spec.hidden, spec.layers)
        self.backbone = nn.ModuleDict({"words": nn.Embedding(vocabulary.size, spec.hidden)})
        self.backbone["mix"] = nn.ModuleList(nn.Linear(spec.hidden, spec.hidden) for _ in range(spec.layers))

    @property
    def table_VD(self) -> nn.Parameter:
        return self.backbone["words"].weight

    def forward(self, batch: Batch, state: Any = None) -> Outputs:
        layers = [self.backbone["words"](batch["ids_BL"])]
        for mix in self.backbone["mix"]:
            below_BLD = layers[-1]
            layers.append(torch.tanh(mix(below_BLD + below_BLD.roll(1, 1) + below_BLD.roll(-1, 1))))
        outputs = Outputs(layers[-1], state, self.summarize(layers[-1], batch))
        return outputs._replace(layers=tuple(layers), summarize=self.summarize) if batch.get("layers") else outputs

    def summarize(self, hidden_BLD: Tensor, batch: Batch) -> Tensor:
        return hidden_BLD.sum(1) / batch["length_B"][:, None]
