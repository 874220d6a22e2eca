"""The base class of optimizer settings, and the parameter groups of all optimizers; no torch at import."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from paribus.core.errors import UserError

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

Rates = Callable[[str], float]  # name of a parameter -> share of the optimizer's rate


class OptimizerSpec(ABC):
    """Settings of an optimizer; a subclass is a frozen dataclass.

    Attributes:
        lr: the highest learning rate; the schedule gives a share of it.
        shards: whether its update of a part of a matrix needs only that part.
        asks_layers: whether `build` is told which parameters are inside layers, as `in_layers`: by name, embeddings
            left out.
        sparse: whether it takes sparse gradients, with the same result.
    """

    lr: float
    semantics: ClassVar[int] = 1
    shards: ClassVar[bool] = True
    asks_layers: ClassVar[bool] = False
    sparse: ClassVar[bool] = False

    @abstractmethod
    def build(self, named: Iterable[tuple[str, nn.Parameter]], rates: Rates | None = None) -> Optimizer:
        """The optimizer over the `parameter_groups` of these parameters."""


def check_betas(betas: Sequence[float]) -> None:
    """Raise UserError for decay rates of Adam's moments that are not two numbers in [0, 1)."""
    if len(betas) != 2 or not all(0 <= beta < 1 for beta in betas):
        raise UserError(f"optimizer.betas={list(betas)} is not a pair of numbers in [0, 1)", "use [0.9, 0.999]")


def parameter_groups(
    named: Iterable[tuple[str, nn.Parameter]], weight_decay: float, rates: Rates | None = None, vectors: bool = False
) -> list[dict[str, Any]]:
    """Matrices and embeddings decay; biases and LayerNorms (vectors) do not (BERT, `optimization.py`), unless
    `vectors` says so.

    Each share of the rate makes two such groups, which hold it as "rate", the highest share first. Parameters that
    are not trained are left out.
    """
    by_share: dict[float, list[nn.Parameter]] = {}
    for name, parameter in named:
        if parameter.requires_grad:
            by_share.setdefault(rates(name) if rates else 1.0, []).append(parameter)
    groups: list[dict[str, Any]] = []
    for share in sorted(by_share, reverse=True):
        matrices = [parameter for parameter in by_share[share] if parameter.ndim > 1]
        others = [parameter for parameter in by_share[share] if parameter.ndim <= 1]
        for parameters, decay in ((matrices, weight_decay), (others, weight_decay if vectors else 0.0)):
            if parameters:
                groups.append({"params": parameters, "weight_decay": decay, **({"rate": share} if rates else {})})
    return groups
