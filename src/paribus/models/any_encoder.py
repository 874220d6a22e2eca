"""Settings of encoders other than BERT and RoBERTa; torch is imported when one is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from paribus.core.errors import UserError
from paribus.models.spec import ModelSpec

if TYPE_CHECKING:
    from transformers import PretrainedConfig

    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.any_network import AnyNetwork, EncoderFacts
    from paribus.models.network import Network

KINDS = (  # by `model_type`; the tests compare each with its class in `transformers`
    "albert",
    "camembert",
    "deberta",
    "deberta-v2",
    "distilbert",
    "electra",
    "ernie",
    "modernbert",
    "mpnet",
    "nomic_bert",
    "roformer",
    "xlm-roberta",
)
_UNUSED = ("model_type", "architectures", "auto_map", "transformers_version", "_name_or_path", "dtype", "torch_dtype")
_DROPOUTS = {  # our setting: its names in the configs of `transformers`
    "dropout": ("hidden_dropout_prob", "dropout", "embedding_dropout", "mlp_dropout"),
    "attention_dropout": ("attention_probs_dropout_prob", "attention_dropout"),
}


@dataclass(frozen=True)
class AnyEncoder(ModelSpec):
    """An encoder of a kind that `transformers` has a masked-LM class for, trained by others.

    It is bidirectional. Nothing can be put inside its layers: adapters, LoRA, attention masks of an
    objective's own, and a generator that shares its embeddings need a BERT.

    Attributes:
        kind: the `model_type`, one of `KINDS`.
        settings: of its `config.json`.
        pooling: what a row is summarized by.
        dropout, attention_dropout: None for those of the settings.

    Raises UserError for settings from which `transformers` cannot build such an encoder.
    """

    kind: str
    settings: Mapping[str, Any]
    pooling: str = "cls"
    dropout: float | None = None
    attention_dropout: float | None = None
    semantics: ClassVar[int] = 1

    @property
    def config(self) -> PretrainedConfig:
        """The config in `transformers`."""
        from transformers import AutoConfig

        settings = {name: value for name, value in self.settings.items() if name not in _UNUSED}
        for key, names in _DROPOUTS.items():
            if (value := getattr(self, key)) is not None:
                settings |= {name: value for name in names if name in settings}
        config: PretrainedConfig = AutoConfig.for_model(self.kind, **settings)
        return config

    @cached_property
    def facts(self) -> EncoderFacts:
        """What only the network itself shows."""
        from paribus.models.any_network import read_facts

        return read_facts(self.config)

    @cached_property
    def _row_flops(self) -> dict[int, int]:
        """{tokens of a row: operations of its forward pass}, as far as they were asked for."""
        return {}

    @property
    def hidden(self) -> int:  # type: ignore[override]
        return self.facts.width

    @property
    def layers(self) -> int:  # type: ignore[override]
        return self.facts.depth

    @property
    def table_width(self) -> int:
        return self.facts.table_width

    @property
    def open_layers(self) -> bool:
        return False

    def check_length(self, length: int, key: str) -> None:
        if length > self.facts.positions:
            raise UserError(f"{key}={length} exceeds the checkpoint's {self.facts.positions} positions", "shorten it")

    def build(self, vocabulary: Vocabulary, seed: int) -> AnyNetwork:
        from paribus.models.any_network import AnyNetwork
        from paribus.models.network import initialize

        network = AnyNetwork(self, vocabulary, self.facts, self.config)
        fixed = [parameter for parameter in network.parameters() if not parameter.requires_grad]  # tables of sinusoids
        initialize(network, seed, network.std, keep=fixed)
        return network

    def load(self, network: Network, folder: Path) -> None:
        from paribus.models import checkpoint

        checkpoint.load_foreign(network, folder)

    def forward_flops(self, tokens: float, length: float, written: float = 0.0, rows: float = 0.0) -> float:
        """As `Shape.forward_flops`, counted in one forward pass of a row; rows count as full."""
        from paribus.models.any_network import count_flops

        full = max(1, round(length))
        if full not in self._row_flops:
            self._row_flops[full] = count_flops(self.config, full)
        return tokens * self._row_flops[full] / full
