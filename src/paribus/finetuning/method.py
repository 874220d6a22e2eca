"""What may change in fine-tuning, and how fast."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from torch import nn

    from paribus.models.network import Network


class Method:
    """What a method does to the loaded encoder. The head moves, at the full rate; this class changes nothing."""

    moves: ClassVar[bool] = True  # something besides a head

    def check(self, layers: int) -> None:
        """Raise UserError where the method asks for layers that an encoder of so many has not."""

    def shape(self, encoder: Network, seed: int) -> None:
        """Put modules in and freeze parameters, before the optimizer is made. New weights follow (seed, name)."""

    def rate(self, encoder: Network, name: str) -> float:
        """The learning rate of a parameter of the encoder, as a share of the optimizer's."""
        return 1.0

    def open(self, encoder: Network, done: float) -> None:
        """Called before every step with the share of fine-tuning that is done: what is frozen for a while."""

    def open_head(self, head: nn.Module, layers: int, done: float) -> None:
        """The same for what stands on an encoder of so many layers."""
