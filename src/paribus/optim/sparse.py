"""Optimizers whose step of a table costs what the rows cost that a batch has read: plain SGD and Adagrad."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.optim.spec import OptimizerSpec, Rates, parameter_groups

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer


@dataclass(frozen=True)
class SGD(OptimizerSpec):
    """p <- p - lr x gradient, without momentum and decay, as word2vec and fastText train.

    The gradient is that of the mean over all predictions of a step. word2vec steps after each prediction: its rate of
    0.025 is `lr` = 0.025 x the predictions of a step. Raises UserError for a rate that is not positive.
    """

    lr: float
    semantics: ClassVar[int] = 1
    sparse: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.lr <= 0:
            raise UserError(f"optimizer.lr={self.lr} is not positive", "give a rate such as 0.1")

    def build(self, named: Iterable[tuple[str, nn.Parameter]], rates: Rates | None = None) -> Optimizer:
        from torch import optim

        return optim.SGD(parameter_groups(named, 0.0, rates), lr=self.lr)


@dataclass(frozen=True)
class Adagrad(SGD):
    """Steps divided by the root of the sum of all squared gradients (Duchi et al. 2011), as GloVe trains.

    Without `start` it does not matter by what the loss is divided. Raises UserError for a rate that is not positive.

    Args:
        start: where the sums begin; 1 in `glove.c`, for gradients that no number of predictions divides.
    """

    start: float = field(default=0.0, metadata=within(0, 10**6))
    eps: float = field(default=1e-10, metadata=within(0, 1))
    semantics: ClassVar[int] = 1

    def build(self, named: Iterable[tuple[str, nn.Parameter]], rates: Rates | None = None) -> Optimizer:
        from torch import optim

        groups = parameter_groups(named, 0.0, rates)
        return optim.Adagrad(groups, lr=self.lr, initial_accumulator_value=self.start, eps=self.eps)
