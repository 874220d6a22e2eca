"""Attention for CPUs: two matrix products with a softmax between them, as `transformers` calls it.

On a CPU, `scaled_dot_product_attention` is slow backward (it computes in float32 and does not reach the matrix unit),
and it has no kernel for a learned bias. The plain form costs memory for [B, H, L, S] probabilities instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from paribus.models.attention_by_parts import Caller, attend_by_parts, make_bias

if TYPE_CHECKING:
    from paribus.models.attention_part import AttentionPart

PLAIN, CHANGED = "paribus_plain", "paribus_changed_sdpa"


def kernel(changed: bool = False) -> str:
    """The fastest attention on this machine, by its name in the configs of `transformers`.

    `changed`: whether the modules that call it may have parts.
    """
    if not torch.cuda.is_available():
        return PLAIN
    return CHANGED if changed else "sdpa"


def find_parts(module: Any) -> list[AttentionPart]:
    """What changes of the encoder do in this module, in their order."""
    return list(getattr(module, "parts", {}).values())


class _Plain(torch.autograd.Function):
    """softmax(query key^T scale + bias) value, with dropout on the probabilities; all of one type."""

    @staticmethod
    def forward(
        ctx: Any,
        query_BHLE: Tensor,
        key_BHSE: Tensor,
        value_BHSE: Tensor,
        bias: Tensor | None,
        scale: float,
        drop: float,
    ) -> Tensor:
        (batch, heads, length, width), seen = query_BHLE.shape, key_BHSE.shape[2]
        if scale != 1.0:
            query_BHLE = torch.mul(query_BHLE, scale, out=query_BHLE.new_empty(query_BHLE.shape))
        query_NLE = query_BHLE.reshape(-1, length, width)
        key_NSE, value_NSE = (part.reshape(-1, seen, width) for part in (key_BHSE, value_BHSE))
        score_NLS = torch.bmm(query_NLE, key_NSE.transpose(1, 2))
        if bias is not None:
            score_NLS.view(batch, heads, length, seen).add_(bias)
        share_NLS = torch.softmax(score_NLS, -1, out=score_NLS)
        keep_NLS = torch.empty_like(share_NLS).bernoulli_(1 - drop).div_(1 - drop) if drop else None
        ctx.save_for_backward(query_NLE, key_NSE, value_NSE, share_NLS, keep_NLS)
        ctx.scale, ctx.bias = scale, bias.shape if bias is not None and ctx.needs_input_grad[3] else None
        read_NLE = torch.bmm(share_NLS if keep_NLS is None else share_NLS * keep_NLS, value_NSE)
        return read_NLE.view(batch, heads, length, width)

    @staticmethod
    def backward(ctx: Any, gradient_BHLE: Tensor) -> tuple[Tensor | None, ...]:
        query_NLE, key_NSE, value_NSE, share_NLS, keep_NLS = ctx.saved_tensors
        (batch, heads), at = gradient_BHLE.shape[:2], gradient_BHLE.flatten(0, 1)
        used_NLS = share_NLS if keep_NLS is None else share_NLS * keep_NLS
        value = torch.bmm(used_NLS.transpose(1, 2), at)
        by_share_NLS = torch.bmm(at, value_NSE.transpose(1, 2))
        if keep_NLS is not None:
            by_share_NLS.mul_(keep_NLS)
        score_NLS = torch._softmax_backward_data(by_share_NLS, share_NLS, -1, share_NLS.dtype)
        query = torch.bmm(score_NLS, key_NSE)
        if ctx.scale != 1.0:
            query.mul_(ctx.scale)
        key = torch.bmm(score_NLS.transpose(1, 2), query_NLE)
        bias = None if ctx.bias is None else score_NLS.view(batch, heads, *score_NLS.shape[1:]).sum_to_size(ctx.bias)
        return (*(part.view(batch, heads, *part.shape[1:]) for part in (query, key, value)), bias, None, None)


def attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    dropout: float = 0.0,
    position_bias: Tensor | None = None,
    place_BQ: Tensor | None = None,
    first_B: Tensor | None = None,
    **_: object,
) -> tuple[Tensor, None]:
    """[B, L, H, E], and no probabilities: what `transformers` asks of its attention functions.

    `attention_mask` is bool, true where a query sees a key, or is added to the scores; without one, a causal
    module hides what is to the right. If the module has `parts`, they change its queries, which are at `place_BQ`,
    keys and scores; `first_B` is that of their `Rows`.
    """

    def plain(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, bias: Tensor | None) -> Tensor:
        return _attend_plain(query, key, value, make_bias(module, query, key, mask, bias), 1.0, dropout)

    if parts := find_parts(module):
        caller = Caller(module, parts, dropout, plain)
        return attend_by_parts(caller, (query, key, value), attention_mask, scaling, place_BQ, first_B), None
    bias = make_bias(module, query, key, attention_mask, position_bias)
    return _attend_plain(query, key, value, bias, scaling, dropout), None


def attend_changed(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    dropout: float = 0.0,
    place_BQ: Tensor | None = None,
    first_B: Tensor | None = None,
    **further: Any,
) -> tuple[Tensor, None]:
    """As `attend`, by the fused attention of PyTorch if no part needs the weights of the values."""

    def fused(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, bias: Tensor | None) -> Tensor:
        if dense:  # added to the scores: a padded query that sees nothing must not become NaN
            mask = make_bias(module, query, key, mask, bias)
        read: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, mask, dropout=dropout, scaling=1.0, **further
        )
        return read[0]

    if parts := find_parts(module):
        dense = any(part.hides_or_scores for part in parts)
        caller = Caller(module, parts, dropout, fused)
        return attend_by_parts(caller, (query, key, value), attention_mask, scaling, place_BQ, first_B), None
    read: tuple[Tensor, None] = sdpa_attention_forward(
        module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **further
    )
    return read


def _attend_plain(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, scaling: float, dropout: float
) -> Tensor:
    """[B, L, H, E]"""
    if torch.compiler.is_compiling():  # the compiler fuses this itself, and cannot view what it has laid out anew
        score_BHLS = torch.matmul(query * scaling, key.transpose(2, 3))
        share_BHLS = torch.softmax(score_BHLS if bias is None else score_BHLS + bias, -1)
        return torch.matmul(functional.dropout(share_BHLS, dropout), value).transpose(1, 2)
    read_BHLE: Tensor = _Plain.apply(query, key, value, bias, scaling, dropout)  # type: ignore[no-untyped-call]
    return read_BHLE.transpose(1, 2)


for name, function in ((PLAIN, attend), (CHANGED, attend_changed)):
    AttentionInterface.register(name, function)
    AttentionMaskInterface.register(name, sdpa_mask)
