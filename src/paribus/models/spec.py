"""The base class of model settings; torch is imported when the network is built."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from paribus.models.shape import Shape

if TYPE_CHECKING:
    from torch import Tensor, nn

    from paribus.corruption.collators.collator import Collator
    from paribus.data.tokens.tokenizer import Tokenizer
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.network import Network


class ModelSpec(Shape):
    """Size and shape of a network, and how it is built. A subclass is a frozen dataclass and states what differs."""

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
