"""The base class of heads: a head reads states and returns a sum of losses with a named denominator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Protocol

import torch
from torch import Tensor, nn

from paribus.models.heads.cross_entropy import summed_cross_entropy
from paribus.models.network import Batch, Outputs


class Head(nn.Module, ABC):
    """Reads the outputs of a network and the targets of a batch.

    Attributes:
        denominator: the count in `batch["counts"]` by which the sum of losses is divided, over the whole step.
        extra_count: added to that count.
    """

    denominator: str
    extra_count: int = 0

    def reads(self, batch: Batch) -> list[Tensor] | None:
        """Flat places in [B, L] whose states are read beside the first of each row; None: all of them."""
        return None

    @abstractmethod
    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        """A score for each possible answer, in the last dimension."""

    @abstractmethod
    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        """The sum of the losses, a scalar, in nats."""

    def answer(self, outputs: Outputs, batch: Batch) -> Tensor:
        """The best answers."""
        return self.logits(outputs, batch).argmax(-1)


class TokenHead(Head):
    """Predicts entries of the vocabulary: the held-out evaluation uses it, and a checkpoint keeps it.

    Reads `slot_P` (flat positions in [B, L]) and `target_P`.
    """

    denominator = "predicted"

    def reads(self, batch: Batch) -> list[Tensor] | None:
        return [batch["slot_P"]]

    @abstractmethod
    def scores(self, hidden_PD: Tensor) -> Tensor:
        """[P, V] for states [P, D]."""

    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        """[P, V] for the P predicted positions."""
        return self.scores(outputs.at(batch["slot_P"]))

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        return summed_cross_entropy(self.logits(outputs, batch), batch["target_P"])


class Reader(Protocol):
    """A protocol for anything that names the positions it reads."""

    def reads(self, batch: Batch) -> list[Tensor] | None: ...


def name_places(heads: Iterable[Reader], batch: Batch) -> Batch:
    """The batch, and as `read_P` the places that these heads read if each of them names its own."""
    read = [head.reads(batch) for head in heads]
    if any(places is None for places in read):
        return batch
    named = [places_P for places in read for places_P in places or ()]
    return {**batch, "read_P": torch.cat([batch["length_B"].new_zeros(0), *named])}


class Wrapper(Head):
    """Any head, on the network's outputs as `read` transforms them."""

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.denominator = head.denominator
        self.head = head

    @abstractmethod
    def read(self, outputs: Outputs, batch: Batch) -> Outputs:
        """What the head reads."""

    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        return self.head.logits(self.read(outputs, batch), batch)

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        loss: Tensor = self.head(self.read(outputs, batch), batch)
        return loss

    def answer(self, outputs: Outputs, batch: Batch) -> Tensor:
        return self.head.answer(self.read(outputs, batch), batch)
