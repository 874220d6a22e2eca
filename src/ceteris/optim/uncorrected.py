"""Adam without bias correction."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer


class Uncorrected(Optimizer):
    """m / (sqrt(v) + eps), as in BERT's and ELECTRA's `optimization.py`; the decay apart from it or in the gradient.

    The first steps are larger than Adam's (arXiv 2006.05987, section 4).
    """

    def __init__(
        self, groups: list[dict[str, Any]], lr: float, betas: tuple[float, float], eps: float, decoupled: bool
    ) -> None:
        super().__init__(groups, {"lr": lr, "betas": betas, "eps": eps, "decoupled": decoupled, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One update of every parameter that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._move(parameter, parameter.grad, group)
        return loss

    def _move(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state |= {"exp_avg": torch.zeros_like(parameter), "exp_avg_sq": torch.zeros_like(parameter)}
        decay = group["weight_decay"] * parameter
        if not group["decoupled"]:
            gradient = gradient + decay
        state["exp_avg"].lerp_(gradient, 1 - group["betas"][0])
        state["exp_avg_sq"].lerp_(gradient.square(), 1 - group["betas"][1])
        update = state["exp_avg"] / (state["exp_avg_sq"].sqrt() + group["eps"])
        parameter.sub_(update + decay if group["decoupled"] else update, alpha=group["lr"])
