"""Muon: the momentum of a hidden matrix is made orthogonal before it moves the matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.optim.spec import OptimizerSpec, Rates, check_betas, parameter_groups

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer


@dataclass(frozen=True)
class Muon(OptimizerSpec):
    """Matrices inside the layers move by their orthogonalized momentum (Jordan et al. 2024, `KellerJordan/Muon`);
    embeddings, heads and vectors move by AdamW, as the authors advise.

    A matrix [A, B] moves at 0.2 sqrt(max(A, B)) times the rate: its update then has the root mean square of AdamW's,
    and one rate serves both (Liu et al., arXiv 2502.16982, section 2.2). Raises UserError for values outside
    their range.

    Attributes:
        momentum: of the matrices, with Nesterov's correction.
        iterations: of Newton and Schulz, which make the momentum orthogonal.
        betas, eps: of AdamW.
        weight_decay: of all matrices and embeddings, decoupled.
    """

    lr: float
    momentum: float = field(default=0.95, metadata=within(0, 1))
    iterations: int = field(default=5, metadata=within(1, 99))
    betas: Sequence[float] = (0.9, 0.98)
    eps: float = 1e-6
    weight_decay: float = 0.01
    semantics: ClassVar[int] = 1
    shards: ClassVar[bool] = False
    asks_layers: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.lr <= 0:
            raise UserError(f"optimizer.lr={self.lr} is not positive", "give a rate such as 1e-3")
        check_betas(self.betas)
        if not 0 <= self.momentum < 1:
            raise UserError(f"optimizer.momentum={self.momentum} is not in [0, 1)", "give 0.95")

    def build(
        self,
        named: Iterable[tuple[str, nn.Parameter]],
        rates: Rates | None = None,
        in_layers: Callable[[str], bool] = lambda name: True,
    ) -> Optimizer:
        """The optimizer; `in_layers` says by its name whether a matrix is inside a layer."""
        from paribus.optim.orthogonal import MuonAndAdamW

        named = list(named)
        inside = {id(parameter) for name, parameter in named if parameter.ndim == 2 and in_layers(name)}
        matrices, others = (
            parameter_groups([pair for pair in named if (id(pair[1]) in inside) == wanted], self.weight_decay, rates)
            for wanted in (True, False)
        )
        betas = self.betas[0], self.betas[1]
        return MuonAndAdamW(matrices, others, self.lr, self.momentum, self.iterations, betas, self.eps)
