"""A left-to-right language model with a head of its own kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from paribus.models.heads.head import TokenHead
from paribus.models.network import Network
from paribus.objectives.mlm import CausalLM
from paribus.objectives.objective import Objective


class Untied(TokenHead):
    """One matrix."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.out = nn.Linear(network.width, network.vocabulary.size)

    def scores(self, hidden_PD: Tensor) -> Tensor:
        scores_PV: Tensor = self.out(hidden_PD)
        return scores_PV


@dataclass(frozen=True)
class UntiedLM(CausalLM):
    def compose(self, network: Network, vocabulary: Any) -> Objective:
        return Objective({self.loss_name: Untied(network)})
