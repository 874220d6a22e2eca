"""A head that reads the encoder through something of its own."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

from torch import Tensor, nn

from paribus.models.encoder import Outputs


class Wide(NamedTuple):
    """What a head must know of what it reads: the width of the states."""

    width: int


class Wrapper(nn.Module):
    """Any head, on what `read` makes of the encoder's outputs."""

    def __init__(self, head: Any) -> None:
        super().__init__()
        self.per: str = head.per
        self.head = head

    def logits(self, outputs: Outputs, batch: dict[str, Any]) -> Tensor:
        """Those of the head."""
        logits: Tensor = self.head.logits(self.read(outputs, batch), batch)
        return logits

    def forward(self, outputs: Outputs, batch: dict[str, Any]) -> Tensor:
        """The head's sum of losses."""
        loss: Tensor = self.head(self.read(outputs, batch), batch)
        return loss

    def answer(self, outputs: Outputs, batch: dict[str, Any]) -> Tensor:
        """That of a head on tokens."""
        found: Tensor = self.head.answer(self.read(outputs, batch), batch)
        return found

    @abstractmethod
    def read(self, outputs: Outputs, batch: dict[str, Any]) -> Outputs:
        """What the head reads."""
