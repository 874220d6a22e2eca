"""AdamW with steps relative to the weights' size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ceteris.errors import UserError
from ceteris.optim.adamw import AdamW

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from ceteris.optim.groups import Rates


@dataclass(frozen=True)
class AdamWRms(AdamW):
    """Each update is multiplied by the root mean square of its weight, at least 1e-3 (nanoT5, arXiv 2309.02373, section
    3.2). The decoupled weight decay is not. Raises UserError for Adam's other kinds.
    """

    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.decoupled and self.bias_correction):
            raise UserError("optimizer=adamw_rms is AdamW with its correction", "leave decoupled and bias_correction")

    def build(self, named: Iterable[tuple[str, nn.Parameter]], rates: Rates | None = None) -> Optimizer:
        """The optimizer over the parameter groups."""
        from ceteris.optim.groups import parameter_groups
        from ceteris.optim.rms import ScaledAdamW

        groups = parameter_groups(named, self.weight_decay, rates)
        return ScaledAdamW(groups, self.lr, (self.betas[0], self.betas[1]), self.eps)
