"""What methods of fine-tuning ask of a network, whatever its kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from torch import nn


class Tunable(nn.Module, ABC):
    """A network without its head that names its parts.

    Attributes:
        width: of the states between layers.
        depth: how many layers are on top of each other; stacks side by side count once.
        backbone: the model of `transformers`.
    """

    width: int
    depth: int
    backbone: Any

    @abstractmethod
    def depth_of(self, parameter: str) -> int:
        """0 for embeddings, i + 1 for layer i of a stack, counted from below, `depth` for what follows the last one.

        Weights that layers share count where they are used first.
        """

    @abstractmethod
    def sublayers(self) -> Iterator[tuple[str, Any]]:
        """("attention" or "ffn", a module whose `dropout` is the last before the residual sum), bottom to top."""

    @abstractmethod
    def norms(self) -> Iterator[nn.Module]:
        """Every layer norm."""

    @abstractmethod
    def matrices(self) -> Iterator[tuple[str, str]]:
        """("query", "key", "value" or "dense", its name in the backbone) of the layers; shared ones once."""

    @abstractmethod
    def share(self) -> None:
        """Make what layers share one again, after modules were put in."""

    def silence(self) -> None:
        """Take all dropout away."""
        for module in self.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0

    @property
    def head_weights(self) -> frozenset[str]:
        """Own parameters that a task's head consists of."""
        return frozenset()

    def parameter_count(self) -> int:
        """Weights without those of heads; shared ones count once."""
        return sum(parameter.numel() for parameter in self.parameters())
