"""Attention for CPUs: two matrix products with a softmax between them, as `transformers` calls it.

On a CPU, `scaled_dot_product_attention` is slow backward (it computes in float32 and does not reach the matrix unit),
and it has no kernel for a learned bias. The plain form costs memory for [B, H, L, S] probabilities instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

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


class Changed(NamedTuple):
    """What the parts of a module make of its attention.

    Attributes:
        query, key: turned, and the queries scaled.
        mask: as it was, with what parts hide; bool.
        bias: what parts add to the scores, if anything.
        dense: whether parts hide keys or add to scores.
        place_BQ, place_1K: of the queries and keys in their rows.
    """

    query: Tensor
    key: Tensor
    mask: Tensor | None
    bias: Tensor | None
    dense: bool
    place_BQ: Tensor
    place_1K: Tensor


def apply_parts(
    parts: Sequence[AttentionPart],
    causal: bool,
    query: Tensor,
    key: Tensor,
    mask: Tensor | None,
    scaling: float,
    place_BQ: Tensor | None,
) -> Changed:
    """Turn, scale, score and hide as the parts do. `place_BQ`: None if there is a query for each key."""
    place_1K = torch.arange(key.shape[2], device=key.device)[None]
    place_BQ = place_1K if place_BQ is None else place_BQ
    for part in parts[:-1]:
        query, key = part.turn(query, key, place_BQ, place_1K)
    query, key = parts[-1].turn_scaled(query, key, place_BQ, place_1K, scaling)

    scores = [part.score(query, key, place_BQ, place_1K) for part in parts]
    added = [score for score in scores if score is not None]
    visible = [shown for part in parts if (shown := part.visible(place_BQ, place_1K)) is not None]
    if visible and mask is None and causal:
        mask = (place_1K[:, None, :] <= place_BQ[:, :, None])[:, None]
    for shown in visible:
        mask = shown if mask is None else mask & shown
    bias = sum(added[1:], start=added[0]) if added else None
    return Changed(query, key, mask, bias, bool(added or visible), place_BQ, place_1K)


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
        key_NSE, value_NSE = (part.reshape(-1, seen, part.shape[3]) for part in (key_BHSE, value_BHSE))
        score_NLS = torch.bmm(query_NLE, key_NSE.transpose(1, 2))
        if bias is not None:
            score_NLS.view(batch, heads, length, seen).add_(bias)
        share_NLS = torch.softmax(score_NLS, -1, out=score_NLS)
        keep_NLS = torch.empty_like(share_NLS).bernoulli_(1 - drop).div_(1 - drop) if drop else None
        ctx.save_for_backward(query_NLE, key_NSE, value_NSE, share_NLS, keep_NLS)
        ctx.scale, ctx.bias = scale, bias.shape if bias is not None and ctx.needs_input_grad[3] else None
        read_NLE = torch.bmm(share_NLS if keep_NLS is None else share_NLS * keep_NLS, value_NSE)
        return read_NLE.view(batch, heads, length, -1)

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
    **_: object,
) -> tuple[Tensor, None]:
    """[B, L, H, E], and no probabilities: what `transformers` asks of its attention functions.

    `attention_mask` is bool, true where a query sees a key, or is added to the scores; without one, a causal
    module hides what is to the right. If the module has `parts`, they change its queries, which are at `place_BQ`,
    keys and scores.
    """
    if parts := find_parts(module):
        changed = apply_parts(parts, module.is_causal, query, key, attention_mask, scaling, place_BQ)
        if any(part.needs_shares for part in parts):
            bias = _make_bias(module, changed.query, changed.key, changed.mask, changed.bias)
            return _attend_by_shares(parts, changed, value, bias, dropout), None
        query, key, attention_mask, position_bias = changed.query, changed.key, changed.mask, changed.bias
        scaling = 1.0
    bias = _make_bias(module, query, key, attention_mask, position_bias)
    if torch.compiler.is_compiling():  # the compiler fuses this itself, and cannot view what it has laid out anew
        score_BHLS = torch.matmul(query * scaling, key.transpose(2, 3))
        share_BHLS = torch.softmax(score_BHLS if bias is None else score_BHLS + bias, -1)
        return torch.matmul(functional.dropout(share_BHLS, dropout), value).transpose(1, 2), None
    read_BHLE: Tensor = _Plain.apply(query, key, value, bias, scaling, dropout)  # type: ignore[no-untyped-call]
    return read_BHLE.transpose(1, 2), None


def _attend_by_shares(
    parts: Sequence[AttentionPart], changed: Changed, value: Tensor, bias: Tensor | None, dropout: float
) -> Tensor:
    """[B, L, H, E], by parts that work on the weights of the values."""
    score_BHQK = torch.matmul(changed.query, changed.key.transpose(2, 3))
    score_BHQK = score_BHQK if bias is None else score_BHQK + bias
    share = next((part.share for part in parts if part.replaces_softmax), parts[0].share)
    share_BHQK = functional.dropout(share(score_BHQK), dropout)
    read_BHQE = torch.matmul(share_BHQK, value)
    for part in parts:
        if (more := part.read(share_BHQK, changed.place_BQ, changed.place_1K)) is not None:
            read_BHQE = read_BHQE + more
    return read_BHQE.transpose(1, 2)


def _make_bias(
    module: Any, query: Tensor, key: Tensor, mask: Tensor | None, position_bias: Tensor | None
) -> Tensor | None:
    """What is added to the scores, in their type."""
    length, seen = query.shape[2], key.shape[2]
    if mask is None and module.is_causal and length > 1:
        mask = torch.ones(length, seen, dtype=torch.bool, device=query.device).tril()
    if mask is not None and mask.dtype == torch.bool:
        lowest = torch.finfo(query.dtype).min
        mask = torch.zeros(mask.shape, dtype=query.dtype, device=mask.device).masked_fill_(~mask, lowest)
    if position_bias is None:
        return mask if mask is None else mask.to(query.dtype)
    bias = position_bias if mask is None else position_bias + mask
    return bias.to(query.dtype, memory_format=torch.contiguous_format)


def attend_changed(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    dropout: float = 0.0,
    place_BQ: Tensor | None = None,
    **further: Any,
) -> tuple[Tensor, None]:
    """As `attend`, by the fused attention of PyTorch if no part needs the weights of the values."""
    parts = find_parts(module)
    if any(part.needs_shares for part in parts):
        return attend(module, query, key, value, attention_mask, scaling, dropout, place_BQ=place_BQ)
    if parts:
        changed = apply_parts(parts, module.is_causal, query, key, attention_mask, scaling, place_BQ)
        query, key, attention_mask, scaling = changed.query, changed.key, changed.mask, 1.0
        if changed.dense:  # added to the scores: a padded query that sees nothing must not become NaN
            attention_mask = _make_bias(module, query, key, changed.mask, changed.bias)
    read: tuple[Tensor, None] = sdpa_attention_forward(
        module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **further
    )
    return read


for name, function in ((PLAIN, attend), (CHANGED, attend_changed)):
    AttentionInterface.register(name, function)
    AttentionMaskInterface.register(name, sdpa_mask)
