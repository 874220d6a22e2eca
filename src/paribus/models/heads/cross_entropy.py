"""Cross-entropy over a vocabulary, a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import log_softmax, nll_loss, softmax

CACHED, RESIDENT = 1 << 19, 1 << 27  # values of a piece: on a processor it stays in the cache, elsewhere launches count


def summed_cross_entropy(logits_PV: Tensor, target_P: Tensor) -> Tensor:
    """The sum of the cross-entropies of P rows in float32, in nats, as `cross_entropy(logits.float(), target,
    reduction="sum")`: to the bit without a gradient, to rounding with one.

    That holds up to three float32 arrays [P, V] at a time; with 32,000 words their making costs a processor many times
    the arithmetic. Here probabilities are made for a few rows, and the gradient with them, in the logits' type.
    """
    loss: Tensor = _ByRows.apply(logits_PV, target_P)  # type: ignore[no-untyped-call]
    return loss


class _ByRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits_PV: Tensor, target_P: Tensor) -> Tensor:
        found_P = torch.empty(target_P.shape, dtype=torch.float32, device=logits_PV.device)
        gradient_PV = torch.empty_like(logits_PV) if ctx.needs_input_grad[0] else None
        parts = [logits_PV, target_P[:, None], found_P[:, None], *([] if gradient_PV is None else [gradient_PV])]
        for logits_RV, target_R1, found_R1, *gradient_RV in cut_rows(*parts):
            if gradient_RV:
                found_R1.copy_(_differentiate(logits_RV, target_R1, *gradient_RV))
            else:
                torch.gather(log_softmax(logits_RV, 1, dtype=torch.float32), 1, target_R1, out=found_R1)
        ctx.save_for_backward(gradient_PV)
        return nll_loss(found_P[:, None], torch.zeros_like(target_P), reduction="sum")  # it adds up by halves

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (gradient_PV,) = ctx.saved_tensors
        return gradient_PV * gradient, None


def _differentiate(logits_RV: Tensor, target_R1: Tensor, gradient_RV: Tensor) -> Tensor:
    """The log-probabilities [R, 1] of the targets; writes the gradient of their negative sum.

    The exponentials of a row are taken once: the largest probability and its logit say what they were divided by.
    """
    share_RV = softmax(logits_RV, 1, dtype=torch.float32)
    largest_R1 = logits_RV.amax(1, keepdim=True).float() - share_RV.amax(1, keepdim=True).log_()
    found_R1 = logits_RV.gather(1, target_R1).float().sub_(largest_R1)
    gradient_RV.copy_(share_RV.scatter_add_(1, target_R1, torch.full_like(found_R1, -1.0)))
    return found_R1


def cut_rows(*parts_PN: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Chunks of a few rows of each part, so small that a chunk of the first part stays in the cache."""
    first = parts_PN[0]
    rows = max(1, (CACHED if first.device.type == "cpu" else RESIDENT) // first.shape[1])
    return zip(*(torch.split(part, rows) for part in parts_PN), strict=True)
