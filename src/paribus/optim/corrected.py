"""Kinds of AdamW of our own, over its settings."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paribus.core.errors import UserError
from paribus.optim.adamw import AdamW

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from paribus.optim.groups import Rates
    from paribus.optim.moments import Moments


@dataclass(frozen=True)
class Corrected(AdamW):
    """AdamW with another update. Raises UserError for Adam's other kinds."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.decoupled and self.bias_correction):
            mend = "leave decoupled and bias_correction true, or take optimizer=adamw"
            raise UserError("the optimizer's decay is decoupled and its moments are corrected", mend)

    def build(self, named: Iterable[tuple[str, nn.Parameter]], rates: Rates | None = None) -> Optimizer:
        """The optimizer over the parameter groups."""
        from paribus.optim.groups import parameter_groups

        groups = parameter_groups(named, self.weight_decay, rates)
        return self.kind()(groups, self.lr, (self.betas[0], self.betas[1]), self.eps)

    @abstractmethod
    def kind(self) -> type[Moments]:
        """How a weight moves."""
