"""Cross-entropy over a vocabulary, a few rows at a time."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import log_softmax, nll_loss

CACHED, RESIDENT = 1 << 19, 1 << 27  # values of a piece: on a processor it stays in the cache, elsewhere launches count


def summed_cross_entropy(logits_PV: Tensor, target_P: Tensor) -> Tensor:
    """The sum of the cross-entropies of P rows in float32, in nats: `cross_entropy(logits.float(), target,
    reduction="sum")` and its gradient, to the bit.

    That holds up to three float32 arrays [P, V] at a time; with 32,000 words their making costs a processor many times
    the arithmetic. Here log-probabilities are made for a few rows, used, and made again on the way back.
    """
    loss: Tensor = _ByRows.apply(logits_PV, target_P)  # type: ignore[no-untyped-call]
    return loss


class _ByRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits_PV: Tensor, target_P: Tensor) -> Tensor:
        ctx.save_for_backward(logits_PV, target_P)
        found_P = torch.empty(target_P.shape, dtype=torch.float32, device=logits_PV.device)
        for logits_RV, target_R, found_R in _pieces(logits_PV, target_P, found_P):
            torch.gather(_log_probabilities(logits_RV), 1, target_R[:, None], out=found_R[:, None])
        return nll_loss(found_P[:, None], torch.zeros_like(target_P), reduction="sum")  # it adds up by halves

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        logits_PV, target_P = ctx.saved_tensors
        found_PV = torch.empty_like(logits_PV)
        at_target_RV = torch.zeros_like(logits_PV[: _rows(logits_PV)], dtype=torch.float32)
        for logits_RV, target_R, found_RV in _pieces(logits_PV, target_P, found_PV):
            given_RV, place_R1 = at_target_RV[: len(target_R)], target_R[:, None]
            given_RV.scatter_(1, place_R1, -gradient.expand(place_R1.shape))
            found_RV.copy_(
                torch.ops.aten._log_softmax_backward_data(given_RV, _log_probabilities(logits_RV), 1, torch.float32)
            )
            given_RV.scatter_(1, place_R1, 0.0)
        return found_PV, None


def _rows(logits_PV: Tensor) -> int:
    return max(1, (CACHED if logits_PV.device.type == "cpu" else RESIDENT) // logits_PV.shape[1])


def _pieces(logits_PV: Tensor, *others: Tensor) -> Any:
    return zip(*(torch.split(whole, _rows(logits_PV)) for whole in (logits_PV, *others)), strict=True)


def _log_probabilities(logits_RV: Tensor) -> Tensor:
    return log_softmax(logits_RV, 1, dtype=torch.float32)
