"""XLNet's network as plain settings; torch is imported when one is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.models.change import Change
from paribus.models.spec import ModelSpec

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.network import Network

PUBLISHED = {"attn_type": "bi", "ff_activation": "gelu", "clamp_len": -1, "same_length": False, "layer_norm_eps": 1e-12}


@dataclass(frozen=True)
class XLNet(ModelSpec):
    """A Transformer-XL that reads in both directions and can predict by a second stream (arXiv 1906.08237, section 2).

    Attributes:
        memory: tokens of earlier rows that a row attends to; 0 for none. It needs rows that go on from each other.
        dropout: the one rate of `XLNetModel`, of hidden states and of attention.
        attention_dropout: None, or the same number as `dropout`; recipes set both.
        norm, changes: no effect. Recipes set them, and positions, for BERT; XLNet's layers are post-LN and its
            positions relative.

    Raises UserError for a shape that cannot be built, and for changes but of positions.
    """

    layers: int = field(metadata=within(1, 10**3))
    hidden: int = field(metadata=within(2, 10**5))
    heads: int = field(metadata=within(1, 10**4))
    intermediate: int = field(metadata=within(1, 10**6))
    memory: int = field(default=0, metadata=within(0, 10**6))
    dropout: float = field(default=0.1, metadata=within(0, 1))
    attention_dropout: float | None = field(default=None, metadata=within(0, 1))
    initializer_range: float = 0.02
    norm: str | None = None
    changes: Mapping[str, Change] = field(default_factory=dict, hash=False)
    semantics: ClassVar[int] = 1
    ignored_settings: ClassVar[frozenset[str]] = frozenset({"attention_dropout", "norm", "changes"})

    def __post_init__(self) -> None:
        if self.hidden % 2 or self.hidden % self.heads:
            cause = f"model.hidden={self.hidden} is not even or not a multiple of model.heads={self.heads}"
            raise UserError(cause, "change one of them")
        if self.attention_dropout not in (None, self.dropout):
            cause = f"model.attention_dropout={self.attention_dropout}, but XLNet has one rate, model.dropout"
            raise UserError(cause, f"set both to {self.dropout}, or both to another rate")
        if added := [name for name in self.changes if name != "position"]:  # that of a recipe
            raise UserError(f"model.changes.{added[0]} is a change of BERT's encoder, not of XLNet's", "leave it out")

    @property
    def open_layers(self) -> bool:
        """Its attention has no linear layers for adapters and LoRA; only the permutation objective brings masks."""
        return False

    @property
    def two_streams(self) -> bool:
        return True

    def without_memory(self) -> XLNet:
        return replace(self, memory=0)

    def forward_flops(self, tokens: float, length: float, written: float = 0.0, rows: float = 0.0) -> float:
        """As `Shape.forward_flops`, of the content stream: scores are products with keys and with distances.

        The projection of the distances is left out: it is computed once for all rows of a batch, or once for each row
        if some are read backwards.
        """
        weights = 4 * self.hidden**2 + 2 * self.hidden * self.intermediate
        remembered = (rows or tokens / length) * self.memory * 4.0 * self.hidden**2  # keys and values of the memory
        return self.layers * (tokens * (2.0 * weights + self._attention_flops(length)) + remembered)

    def query_flops(self, predicted: float, tokens: float, length: float) -> float:
        """Those of the query stream, which asks for `predicted` tokens. `XLNetModel` computes its scores at every place
        of a row, and everything else where a token is predicted.
        """
        weights = 2 * self.hidden**2 + 2 * self.hidden * self.intermediate
        return self.layers * (predicted * 2.0 * weights + tokens * self._attention_flops(length))

    def _attention_flops(self, length: float) -> float:
        """Of one token: scores of keys and of distances, which are a row's length more, and the sum of values."""
        keys = length + self.memory
        return 2.0 * self.hidden * (3 * keys + length)

    def build(self, vocabulary: Vocabulary, seed: int) -> Network:
        from paribus.models.network import initialize
        from paribus.models.xlnet_network import XLNetNetwork

        network = XLNetNetwork(self, vocabulary)
        initialize(network, seed, network.std)
        return network


@dataclass(frozen=True)
class ForeignXLNet(XLNet):
    """The shape of an XLNet that others have trained, without a memory."""

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> ForeignXLNet:
        """From the content of its `config.json`. Raises UserError for layers that are not those of the paper."""
        for name, usual in PUBLISHED.items():
            if config.get(name, usual) != usual:
                raise UserError(f"the XLNet has {name}={config[name]}", f"give one with {name}={usual}, as published")
        return cls(
            layers=config["n_layer"],
            hidden=config["d_model"],
            heads=config["n_head"],
            intermediate=config["d_inner"],
            dropout=config.get("dropout", 0.1),
            initializer_range=config.get("initializer_range", 0.02),
        )

    def load(self, network: Network, folder: Path) -> None:
        from paribus.models import checkpoint

        checkpoint.load_foreign(network, folder)
