"""The base class of optimizer settings; torch is imported when the optimizer is built."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from paribus.optim.groups import Rates


class OptimizerSpec(ABC):
    """Settings of an optimizer; a subclass is a frozen dataclass.

    Attributes:
        lr: the highest learning rate; the schedule gives a share of it.
        shards: whether its update of a part of a matrix needs only that part.
    """

    lr: float
    semantics: ClassVar[int] = 1
    shards: ClassVar[bool] = True

    @abstractmethod
    def build(self, named: Iterable[tuple[str, nn.Parameter]], rates: Rates | None = None) -> Optimizer:
        """The optimizer over the parameter groups of `optim.groups`."""
