"""Cross-entropy over a vocabulary, a few rows at a time."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import log_softmax, nll_loss

CACHED, RESIDENT = 1 << 19, 1 << 27  # values of a piece: on a processor it stays in the cache, elsewhere launches count


def summed_cross_entropy(logits_PV: Tensor, target_P: Tensor) -> Tensor:
    """The sum of the cross-entropies of P rows in float32, in nats, as `cross_entropy(logits.float(), target,
    reduction="sum")`; its gradient is the same to rounding.

    That holds up to three float32 arrays [P, V] at a time; with 32,000 words their making costs a processor many times
    the arithmetic. Here log-probabilities are made for a few rows, and the gradient with them, in the logits' type.
    """
    loss: Tensor = _ByRows.apply(logits_PV, target_P)  # type: ignore[no-untyped-call]
    return loss


class _ByRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits_PV: Tensor, target_P: Tensor) -> Tensor:
        found_P = torch.empty(target_P.shape, dtype=torch.float32, device=logits_PV.device)
        gradient_PV = torch.empty_like(logits_PV) if ctx.needs_input_grad[0] else None
        parts = (logits_PV, target_P[:, None], found_P[:, None])
        pieces = zip(*(torch.split(whole, _rows(logits_PV)) for whole in parts), strict=True)
        for at, (logits_RV, target_R1, found_R1) in enumerate(pieces):
            log_RV = log_softmax(logits_RV, 1, dtype=torch.float32)
            torch.gather(log_RV, 1, target_R1, out=found_R1)
            if gradient_PV is not None:
                share_RV = log_RV.exp_().scatter_add_(1, target_R1, torch.full_like(found_R1, -1.0))
                gradient_PV[at * _rows(logits_PV) :][: len(share_RV)] = share_RV
        ctx.save_for_backward(gradient_PV)
        return nll_loss(found_P[:, None], torch.zeros_like(target_P), reduction="sum")  # it adds up by halves

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (gradient_PV,) = ctx.saved_tensors
        return gradient_PV * gradient, None


def _rows(logits_PV: Tensor) -> int:
    return max(1, (CACHED if logits_PV.device.type == "cpu" else RESIDENT) // logits_PV.shape[1])
