"""T5's feed-forward networks and norms as `transformers` has them, with fewer passes over memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers.models.t5.modeling_t5 import T5DenseActDense, T5DenseGatedActDense, T5LayerNorm


class _FeedForward(T5DenseActDense):
    """Without the library's conversion to float32 before the last matrix, which exists for 8-bit weights."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        written: Tensor = self.wo(self.dropout(self.act(self.wi(hidden_states))))
        return written


class _Gated(T5DenseGatedActDense):
    """As `_FeedForward`."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        written: Tensor = self.wo(self.dropout(self.act(self.wi_0(hidden_states)) * self.wi_1(hidden_states)))
        return written


class _Norm(T5LayerNorm):
    """Root mean square norm (arXiv 1910.07467). Its result has the type of the matrix products that read it."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        kind = hidden_states.device.type
        reads = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else hidden_states.dtype
        normed: Tensor = _RootMeanSquare.apply(  # type: ignore[no-untyped-call]
            hidden_states, self.weight, self.variance_epsilon, reads
        )
        return normed


class _RootMeanSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, given_ND: Tensor, weight_D: Tensor, eps: float, dtype: torch.dtype) -> Tensor:
        length_N1 = torch.linalg.vector_norm(given_ND, dim=-1, keepdim=True, dtype=torch.float32)
        scale_N1 = length_N1.square_().div_(given_ND.shape[-1]).add_(eps).rsqrt_()
        ctx.save_for_backward(given_ND, weight_D, scale_N1)
        normed_ND: Tensor = given_ND * scale_N1
        return normed_ND.mul_(weight_D).to(dtype)

    @staticmethod
    def backward(ctx: Any, gradient_ND: Tensor) -> tuple[Tensor | None, ...]:
        given_ND, weight_D, scale_N1 = ctx.saved_tensors
        by_normed_ND = gradient_ND.to(torch.float32)
        normed_ND = given_ND * scale_N1
        product_ND = by_normed_ND * normed_ND
        by_weight_D = product_ND.sum(tuple(range(product_ND.ndim - 1)))
        along_N1 = product_ND.mul_(weight_D).mean(-1, keepdim=True)
        by_given_ND = (by_normed_ND * weight_D).sub_(normed_ND.mul_(along_N1)).mul_(scale_N1)
        return by_given_ND.to(given_ND.dtype), by_weight_D, None, None


LEAN: dict[type[nn.Module], type[nn.Module]] = {
    T5DenseActDense: _FeedForward,
    T5DenseGatedActDense: _Gated,
    T5LayerNorm: _Norm,
}


def slim(model: nn.Module) -> None:
    """Give the parts of a T5 model their lean forward pass; weights and their names stay."""
    for module in model.modules():
        if lean := LEAN.get(type(module)):
            module.__class__ = lean
