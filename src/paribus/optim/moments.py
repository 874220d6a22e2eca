"""Variants of Adam that torch lacks: one loop over the weights, their two moments, an update for each variant."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

SMALLEST = 1e-3  # of the root mean square: weights at zero still move

Group = dict[str, Any]
State = dict[str, Any]  # "step", "exp_avg", "exp_avg_sq" of a weight


class Moments(Optimizer):
    """Keeps the running means of the gradient and of its square; `update` computes the step of a weight."""

    def __init__(
        self, groups: list[Group], lr: float, betas: tuple[float, float], eps: float, decoupled: bool = True
    ) -> None:
        super().__init__(groups, {"lr": lr, "betas": betas, "eps": eps, "decoupled": decoupled, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One update of every weight that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            first, second = group["betas"]
            for weight in group["params"]:
                if (gradient := weight.grad) is None:
                    continue
                state = self.state[weight]
                if not state:
                    state |= {"step": 0, "exp_avg": torch.zeros_like(weight), "exp_avg_sq": torch.zeros_like(weight)}
                state["step"] += 1
                if not group["decoupled"]:
                    gradient = gradient + group["weight_decay"] * weight
                state["exp_avg"].lerp_(gradient, 1 - first)
                state["exp_avg_sq"].lerp_(gradient.square(), 1 - second)
                self.update(weight, state, group)
        return loss

    @abstractmethod
    def update(self, weight: Tensor, state: State, group: Group) -> None:
        """Move `weight` in place."""


def correct(state: State, group: Group) -> Tensor:
    """m / (sqrt(v) + eps), both corrected for their start at zero."""
    first, second = (1 - beta ** state["step"] for beta in group["betas"])
    direction: Tensor = (state["exp_avg"] / first) / ((state["exp_avg_sq"] / second).sqrt() + group["eps"])
    return direction


class Uncorrected(Moments):
    """m / (sqrt(v) + eps), as in BERT's and ELECTRA's `optimization.py`; the decay is separate or part of the gradient.

    The first steps are larger than Adam's (arXiv 2006.05987, section 4).
    """

    def update(self, weight: Tensor, state: State, group: Group) -> None:
        update = state["exp_avg"] / (state["exp_avg_sq"].sqrt() + group["eps"])
        if group["decoupled"]:
            update = update + group["weight_decay"] * weight
        weight.sub_(update, alpha=group["lr"])


class ScaledAdamW(Moments):
    """p <- p - lr (max(1e-3, RMS(p)) m / (sqrt(v) + eps) + decay p), moments corrected for their start at zero."""

    def update(self, weight: Tensor, state: State, group: Group) -> None:
        scale = (weight.norm() / weight.numel() ** 0.5).clamp_min(SMALLEST)
        weight.sub_(correct(state, group) * scale + group["weight_decay"] * weight, alpha=group["lr"])


class LambSteps(Moments):
    """p <- p - lr |p| / |u| u with u = m / (sqrt(v) + eps) + decay p: each matrix moves by a share of its own norm.

    Vectors (biases, LayerNorms) move by u, as in the authors' code.
    """

    def update(self, weight: Tensor, state: State, group: Group) -> None:
        """A norm of zero leaves u as it is."""
        update = correct(state, group) + group["weight_decay"] * weight
        if weight.ndim > 1:
            norms = weight.norm(), update.norm()
            update *= torch.where((norms[0] > 0) & (norms[1] > 0), norms[0] / norms[1], 1.0)
        weight.sub_(update, alpha=group["lr"])
