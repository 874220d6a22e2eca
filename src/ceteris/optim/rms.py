"""AdamW with updates scaled by the root mean square of the weight, as a torch optimizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

SMALLEST = 1e-3  # of the scale: weights at zero still move


class ScaledAdamW(Optimizer):
    """p <- p - lr (max(1e-3, RMS(p)) m / (sqrt(v) + eps) + decay p), moments corrected for their start at zero."""

    def __init__(self, groups: list[dict[str, Any]], lr: float, betas: tuple[float, float], eps: float) -> None:
        super().__init__(groups, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One update of every weight that has a gradient."""
        loss = None if closure is None else closure()
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self._move(weight, group)
        return loss

    def _move(self, weight: Tensor, group: dict[str, Any]) -> None:
        state = self.state[weight]
        if not state:
            state |= {"step": 0, "mean": torch.zeros_like(weight), "square": torch.zeros_like(weight)}
        state["step"] += 1
        assert weight.grad is not None
        first, second = group["betas"]
        mean, square = state["mean"], state["square"]
        mean.lerp_(weight.grad, 1 - first)
        square.mul_(second).addcmul_(weight.grad, weight.grad, value=1 - second)
        scale = (weight.norm() / weight.numel() ** 0.5).clamp_min(SMALLEST)
        spread = (square / (1 - second ** state["step"])).sqrt_().add_(group["eps"])
        weight.mul_(1 - group["lr"] * group["weight_decay"])
        weight.sub_(mean / spread * (scale * (group["lr"] / (1 - first ** state["step"]))))
