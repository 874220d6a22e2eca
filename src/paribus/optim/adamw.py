"""AdamW, and the variants that papers compare it with."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from paribus.core.errors import UserError
from paribus.optim.spec import OptimizerSpec, Rates, check_betas, parameter_groups

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from paribus.optim.moments import Moments


@dataclass(frozen=True)
class AdamW(OptimizerSpec):
    """Adam with decoupled weight decay (arXiv 1711.05101), none on biases and LayerNorms.

    `decay_vectors=True` lets biases and LayerNorms decay too. `decoupled=False` adds the decay to the gradient (L2).
    `bias_correction=False` leaves out Adam's, as BERT's own optimizer does. Raises UserError for values outside their
    range.
    """

    lr: float
    betas: Sequence[float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.01
    decoupled: bool = True
    bias_correction: bool = True
    decay_vectors: bool = False
    semantics: ClassVar[int] = 1
    unset_values: ClassVar[Mapping[str, Any]] = {"decay_vectors": False}

    def __post_init__(self) -> None:
        if self.lr <= 0:
            raise UserError(f"optimizer.lr={self.lr} is not positive", "give a rate such as 1e-3")
        check_betas(self.betas)

    def build(self, named: Iterable[tuple[str, nn.Parameter]], rates: Rates | None = None) -> Optimizer:
        """The optimizer over the parameter groups; torch's own in its fused form (the same update, one kernel)."""
        from torch import optim

        from paribus.optim.moments import Uncorrected

        groups = parameter_groups(named, self.weight_decay, rates, self.decay_vectors)
        betas = self.betas[0], self.betas[1]
        if not self.bias_correction:
            return Uncorrected(groups, self.lr, betas, self.eps, self.decoupled)
        optimizer = optim.AdamW if self.decoupled else optim.Adam
        return optimizer(groups, lr=self.lr, betas=betas, eps=self.eps, fused=True)


@dataclass(frozen=True)
class Variant(AdamW):
    """AdamW with a different update. Raises UserError unless decay is decoupled and moments are corrected."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.decoupled and self.bias_correction):
            mend = "leave decoupled and bias_correction true, or set optimizer=adamw"
            raise UserError("this variant of AdamW needs decoupled decay and bias correction", mend)

    def build(self, named: Iterable[tuple[str, nn.Parameter]], rates: Rates | None = None) -> Optimizer:
        groups = parameter_groups(named, self.weight_decay, rates, self.decay_vectors)
        return self.optimizer_class()(groups, self.lr, (self.betas[0], self.betas[1]), self.eps)

    @abstractmethod
    def optimizer_class(self) -> type[Moments]:
        """The optimizer that moves the weights."""


@dataclass(frozen=True)
class AdamWRms(Variant):
    """Each update is multiplied by the root mean square of its weight, at least 1e-3 (nanoT5, arXiv 2309.02373, section
    3.2). The decoupled weight decay is not.
    """

    semantics: ClassVar[int] = 1

    def optimizer_class(self) -> type[Moments]:
        from paribus.optim.moments import ScaledAdamW

        return ScaledAdamW


@dataclass(frozen=True)
class Lamb(Variant):
    """AdamW whose update of a matrix has the norm of the matrix, for large batches (arXiv 1904.00962, algorithm 2).

    Biases and LayerNorms move as AdamW's.
    """

    semantics: ClassVar[int] = 1

    def optimizer_class(self) -> type[Moments]:
        from paribus.optim.moments import LambSteps

        return LambSteps
