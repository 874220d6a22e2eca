"""Small second networks, objectives and heads; nothing in the package names them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from paribus.corruption.corruption import Corruption
from paribus.models.bert import Bert
from paribus.models.heads.head import Head
from paribus.models.heads.vocabulary import MaskedLMHead
from paribus.models.network import Batch, Network, Outputs, initialize
from paribus.models.spec import ModelSpec
from paribus.objectives.objective import Objective
from paribus.objectives.spec import ObjectiveSpec, Statistics


@dataclass(frozen=True)
class WordVectors(ModelSpec):
    """Static word vectors: one table, no layer."""

    hidden: int
    layers: int = 0
    semantics: ClassVar[int] = 1

    def build(self, vocabulary: Any, seed: int) -> Network:
        network = Table(self, vocabulary)
        initialize(network, seed, network.std)
        return network

    def forward_flops(self, tokens: float, length: float, written: float = 0.0, rows: float = 0.0) -> float:
        return 0.0


class Table(Network):
    """A row is summarized by the mean of its vectors."""

    def __init__(self, spec: WordVectors, vocabulary: Any) -> None:
        super().__init__(spec, vocabulary, spec.hidden, spec.layers)
        self.backbone = nn.Embedding(vocabulary.size, spec.hidden, padding_idx=vocabulary.pad)

    @property
    def table_VD(self) -> nn.Parameter:
        return self.backbone.weight

    def forward(self, batch: Batch, state: Any = None) -> Outputs:
        hidden_BLD = self.backbone(batch["ids_BL"])
        return Outputs(hidden_BLD, state, self.summarize(hidden_BLD, batch))

    def summarize(self, hidden_BLD: Tensor, batch: Batch) -> Tensor:
        return hidden_BLD.sum(1) / batch["length_B"][:, None]


@dataclass(frozen=True)
class Remembering(WordVectors):
    """Word vectors and a memory: a running sum over all steps of a row, forgotten where a document begins."""

    def build(self, vocabulary: Any, seed: int) -> Network:
        network = Memory(self, vocabulary)
        initialize(network, seed, network.std)
        return network


class Memory(Table):
    """Keeps every state that it was given, to show what was carried."""

    def __init__(self, spec: WordVectors, vocabulary: Any) -> None:
        super().__init__(spec, vocabulary)
        self.given: list[Any] = []

    def forward(self, batch: Batch, state: Any = None) -> Outputs:
        self.given.append(state)
        hidden_BLD = self.backbone(batch["ids_BL"])
        past_BD = torch.zeros_like(hidden_BLD[:, 0]) if state is None else state["sum_BD"]
        past_BD = past_BD * ~batch["begins_B"][:, None]
        now_BD = past_BD + hidden_BLD.sum(1)
        return Outputs(hidden_BLD + past_BD[:, None], {"sum_BD": now_BD})


class ReplacedHead(Head):
    """Which tokens are not the original ones: one score per token."""

    denominator = "input_tokens"

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, 1)

    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        scores: Tensor = self.score(outputs.hidden_BLD)
        return scores

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        column_L = torch.arange(batch["ids_BL"].shape[1], device=batch["length_B"].device)
        real_BL = column_L < batch["length_B"][:, None]
        score_BL = self.logits(outputs, batch)[..., 0]
        return binary_cross_entropy_with_logits(score_BL[real_BL], batch["replaced_BL"][real_BL], reduction="sum")


@dataclass(frozen=True)
class ReplacedTokens(ObjectiveSpec):
    """A small generator fills the noised positions, and the network tells which tokens it changed."""

    view: Any
    width: int = 16
    semantics: ClassVar[int] = 1

    def corruption(self, masking: Any) -> Corruption:
        return Corruption(masking, self.view)

    def compose(self, network: Network, vocabulary: Any) -> Objective:
        small = Bert(1, self.width, 2, 2 * self.width, positions=128, dropout=0.0, attention_dropout=0.0)
        return GeneratorAndDiscriminator(network, small.build(vocabulary, 0))

    def head_flops(self, statistics: Statistics, model: ModelSpec) -> float:
        return statistics.counts["input_tokens"] * 2.0 * self.width


class GeneratorAndDiscriminator(Objective):
    """The generator is a network of the objective; its choices cross to the discriminator as plain numbers."""

    def __init__(self, network: Network, generator: Network) -> None:
        super().__init__({"replaced": ReplacedHead(network.width)}, weights={"generator": 1.0, "replaced": 50.0})
        self.generator, self.fill = generator, MaskedLMHead(generator)
        self.shared = nn.Linear(network.width, network.width, bias=False)
        self.shared.weight = nn.Parameter(network.table_VD.detach()[: network.width].clone())
        self.table = nn.Module()
        self.table.weight = network.table_VD  # a weight of the network under a second name

    def denominators(self) -> dict[str, str]:
        return {"generator": "predicted", **super().denominators()}

    def forward(self, network: nn.Module, batch: Batch, state: Any = None) -> tuple[dict[str, Tensor], Any]:
        logits_PV = self.fill.logits(self.generator(batch), batch)
        ids_BL, replaced_BL = batch["ids_BL"].clone(), torch.zeros_like(batch["ids_BL"], dtype=torch.float)
        chosen_P = logits_PV.detach().argmax(-1)
        ids_BL.view(-1)[batch["slot_P"]] = chosen_P
        replaced_BL.view(-1)[batch["slot_P"]] = (chosen_P != batch["target_P"]).float()
        filled = {**batch, "ids_BL": ids_BL, "replaced_BL": replaced_BL}
        losses, state = super().forward(network, filled, state)
        return {"generator": cross_entropy(logits_PV, batch["target_P"], reduction="sum"), **losses}, state


class Topic(Head):
    """A class for a whole row."""

    denominator = "rows"

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.classifier = nn.Linear(width, classes)

    def logits(self, outputs: Outputs, batch: Batch) -> Tensor:
        logits: Tensor = self.classifier(outputs.row_BD)
        return logits

    def forward(self, outputs: Outputs, batch: Batch) -> Tensor:
        return cross_entropy(self.logits(outputs, batch), batch["label_B"], reduction="sum")
