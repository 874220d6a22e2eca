"""AdamW."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ceteris.errors import UserError

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer


@dataclass(frozen=True)
class AdamW:
    """Adam with decoupled weight decay (arXiv 1711.05101), none on biases and LayerNorms.

    Raises UserError for values outside their range.
    """

    lr: float
    betas: Sequence[float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.01
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.lr <= 0:
            raise UserError(f"optimizer.lr={self.lr} is not positive", "give a rate such as 1e-3")
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise UserError(f"optimizer.betas={list(self.betas)} is no pair of numbers in [0, 1)", "use [0.9, 0.999]")

    def build(self, named: Iterable[tuple[str, nn.Parameter]]) -> Optimizer:
        """The torch optimizer over the parameter groups, in its fused form (the same update, one kernel)."""
        from torch import optim

        from ceteris.optim.groups import parameter_groups

        groups = parameter_groups(named, self.weight_decay)
        return optim.AdamW(groups, lr=self.lr, betas=(self.betas[0], self.betas[1]), eps=self.eps, fused=True)
