"""Classifiers that are only there to train a left-to-right language model (Al-Rfou et al., arXiv 1808.04444).

Each is a linear layer of its own on the states of one layer, and says what comes next or next but one.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm

from paribus.models.heads.head import Head, summed_cross_entropy
from paribus.models.network import Batch, Network, Outputs

SECOND = "second_P"  # in a batch: the token after each target


class SecondTokenHead(Head):
    """The next token but one, from the last layer's states at `slot_P`."""

    denominator = "predicted"

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.classifier = nn.Linear(network.width, network.vocabulary.size)

    def reads(self, batch: Batch) -> list[Tensor] | None:
        return [batch["slot_P"]]

    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        """[P, V]"""
        logits_PV: Tensor = self.classifier(outputs.at(batch["slot_P"]))
        return logits_PV

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        return summed_cross_entropy(self.logits(outputs, batch), batch[SECOND])


class LowerLayersHead(Head):
    """The next token, and the next but one, from each layer below the last: layer l of n until l / 2n of the training
    is done, so that none is left after half of it.

    States are normalized before they are read, since those of pre-norm layers grow from layer to layer.

    Args:
        second_weight: of the losses of the next token but one; 0: they are not there.
    """

    denominator = "predicted"

    def __init__(self, network: Network, second_weight: float) -> None:
        super().__init__()
        self.second_weight, self.width, self.depth = second_weight, network.width, network.depth
        kinds = 2 if second_weight else 1
        self.classifiers = nn.ModuleList(
            nn.ModuleList(nn.Linear(network.width, network.vocabulary.size) for _ in range(kinds))
            for _ in range(network.depth - 1)
        )
        self.begin_step(0.0)

    def begin_step(self, done: float) -> None:
        """Choose the layers that predict in a step, by the share of the steps that are done."""
        self.alive = find_alive(self.depth, done)
        self.reads_layers = bool(self.alive)  # a network need not keep what nothing reads

    def reads(self, batch: Batch) -> list[Tensor] | None:
        return []

    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        """[S, P, V]: of the next token, for the S layers that predict."""
        return torch.stack([self._classify(outputs, batch, layer)[0] for layer in self.alive])

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        loss = outputs.hidden_BLD.new_zeros(())
        for layer in self.alive:
            next_PV, *second_PV = self._classify(outputs, batch, layer)
            loss = loss + summed_cross_entropy(next_PV, batch["target_P"])
            if second_PV:
                loss = loss + self.second_weight * summed_cross_entropy(second_PV[0], batch[SECOND])
        return loss

    def _classify(self, outputs: Outputs, batch: Batch, layer: int) -> list[Tensor]:
        """The logits [P, V] of each target from a layer, 1 for the lowest."""
        assert outputs.layers is not None
        state_PD = outputs.layers[layer].flatten(0, 1).index_select(0, batch["slot_P"])
        state_PD = layer_norm(state_PD, (self.width,))
        classifiers: nn.ModuleList = self.classifiers[layer - 1]  # type: ignore[assignment]
        return [classifier(state_PD) for classifier in classifiers]


def find_alive(depth: int, done: float) -> list[int]:
    """The layers below the last, 1 for the lowest, that still predict when this share of the training is done."""
    return [layer for layer in range(1, depth) if done < layer / (2 * depth)]
