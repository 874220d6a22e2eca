"""Torch's Muon and AdamW as one optimizer, since a training has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import optim

Groups = list[dict[str, Any]]


class MuonAndAdamW(optim.Optimizer):
    """Muon on the groups `matrices`, AdamW on the `others`; either may be empty.

    The state is that of both, so that a checkpoint of this optimizer restores them.
    """

    def __init__(
        self,
        matrices: Groups,
        others: Groups,
        lr: float,
        momentum: float,
        iterations: int,
        betas: tuple[float, float],
        eps: float,
    ) -> None:
        self.parts: dict[str, optim.Optimizer] = {}
        if matrices:
            self.parts["muon"] = optim.Muon(
                matrices, lr=lr, momentum=momentum, ns_steps=iterations, adjust_lr_fn="match_rms_adamw"
            )
        if others:
            self.parts["adamw"] = optim.AdamW(others, lr=lr, betas=betas, eps=eps, fused=True)
        groups = [{**group, "by": name} for name, part in self.parts.items() for group in part.param_groups]
        super().__init__(groups, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One update of every weight that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for name, part in self.parts.items():
            # Rates and a restored state are here; each part works on its groups and on the one state
            part.param_groups = [group for group in self.param_groups if group["by"] == name]
            part.state = self.state
            part.step()
        return loss
