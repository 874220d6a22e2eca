"""The base classes of model settings; torch is imported when a network is built."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from torch import Tensor, nn

    from paribus.corruption.collators.collator import Collator
    from paribus.data.tokens.tokenizer import Tokenizer
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.network import Network


class Shape(ABC):
    """Size and shape of a network, from which its heads and costs follow. A subclass states what differs from these
    defaults.

    `hidden` is the width of the states between layers, `layers` their number, `memory` how many places before a row
    each layer remembers.
    """

    hidden: int
    layers: int
    memory: int = 0

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

    def without_memory(self) -> Shape:
        """The same shape for rows that remember nothing."""
        return self

    @property
    def two_streams(self) -> bool:
        """Whether a second stream can predict a token without seeing it, so that none has to be hidden in the text."""
        return False

    def query_flops(self, predicted: float, tokens: float, length: float) -> float:
        """Floating-point operations of a second stream that predicts so many of these tokens, in rows of a length."""
        return 0.0

    @property
    def static(self) -> bool:
        """Whether the state of a token is a vector of its own, whatever stands beside it. A stage of another model may
        start from such vectors.
        """
        return False

    @property
    def whole_batches(self) -> bool:
        """Whether the states of a row depend on the other rows of its batch, so that a batch stays in one piece."""
        return False

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


class ModelSpec(Shape):
    """The settings of a model, and how it is built. A subclass is a frozen dataclass and states what differs."""

    semantics: ClassVar[int] = 1

    @property
    def collator(self) -> Collator | None:
        """The collator for the arrays that the network reads; None for the objective's."""
        return None

    def check_tokenizer(self, tokenizer: Tokenizer) -> None:
        """Raise UserError if the model came with embeddings of other words than those of the tokenizer."""

    @abstractmethod
    def build(self, vocabulary: Vocabulary, seed: int) -> Network:
        """The network with its initial weights, a pure function of (self, vocabulary, seed)."""

    def initial(self, vocabulary: Vocabulary, seed: int) -> Network:
        """The network as `build` gives it, but without the weights of a checkpoint."""
        return self.build(vocabulary, seed)

    def load(self, network: Network, folder: Path) -> None:
        """Fill the network with the weights of a checkpoint. Raises UserError for weights that do not fit."""
        from paribus.models import checkpoint

        checkpoint.load(network, folder)

    def fill(self, network: Network, head: nn.Module) -> bool:
        """Give the head on tokens the weights that came with the model; return whether it has them all."""
        return False

    def fill_pairs(self, network: Network, head: nn.Module, pairs: str | None) -> bool:
        """Give the head on these pairs the weights that came with the model; return whether it has them all."""
        return False

    def fill_further(self, parts: Mapping[str, nn.Module]) -> None:
        """Give the objective's further heads and networks the weights that came with the model, by name."""

    def lacks_pooler(self, network: Network) -> bool:
        """Whether the model came with weights, but none for a pooler."""
        return False

    def pooler(self, network: Network, seed: int) -> dict[str, Tensor] | None:
        """{"weight", "bias"} of the pooler that came with the model, if any; initial ones if those of the model are."""
        return None
