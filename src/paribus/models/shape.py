"""Size and shape of a model, as far as its network, heads and costs follow from them."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Shape(ABC):
    """Numbers and kinds that a network is made of. A subclass states what differs from these defaults.

    `hidden` is the width of the states between layers, `layers` their number.
    """

    hidden: int
    layers: int

    @property
    def shape(self) -> Shape:
        """The settings of the network: those of the model, or of the checkpoint that it is."""
        return self

    @property
    def attention(self) -> str:
        """Which tokens a token attends to: "full", or "left" for those to its left."""
        return "full"

    @property
    def writes_text(self) -> bool:
        """Whether the network writes text; otherwise heads predict from its states."""
        return False

    @property
    def single(self) -> bool:
        """Whether a network that writes reads and writes one stream."""
        return False

    @property
    def tied_head(self) -> bool:
        """Whether the head that writes consists of the word embeddings."""
        return False

    @property
    def pooling(self) -> str:
        """What the model was trained to summarize a row by: "cls", "mean" or "max"."""
        return "cls"

    @property
    def initializer_range(self) -> float:
        """Standard deviation of the initial weights of heads."""
        return 0.02

    @property
    def table_width(self) -> int:
        """Width of the word embeddings, to which prediction heads are tied."""
        return self.hidden

    @property
    def open_layers(self) -> bool:
        """Whether modules may be put inside the layers, and rows may bring attention masks."""
        return True

    def check_length(self, length: int, key: str) -> None:  # noqa: B027 (most networks have no longest input)
        """Raise UserError, under the config key, if an input of `length` tokens is too long."""

    @abstractmethod
    def forward_flops(self, tokens: float, length: float, written: float = 0.0, rows: float = 0.0) -> float:
        """Floating-point operations of one forward pass without heads.

        Args:
            tokens: tokens that are read.
            length: tokens of a full row.
            written: tokens that are written or, in a single stream, predicted.
            rows: rows in which the tokens lie; 0 if all rows are full.
        """
