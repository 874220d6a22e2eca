"""Attention for CPUs: two matrix products with a softmax between them, as `transformers` calls it.

On a CPU, `scaled_dot_product_attention` is slow backward (it computes in float32 and does not reach the matrix unit),
and it has no kernel for a learned bias. The plain form costs memory for [B, H, L, S] probabilities instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from paribus.core.errors import UserError
from paribus.models.attention_part import AttentionPart

PLAIN, CHANGED, WATCHED = "paribus_plain", "paribus_changed_sdpa", "paribus_watched"
CHECKED = 512  # places of a row at which it is checked who sees whom
SHORTEST = 3  # tokens of a row: [CLS], one of text, [SEP]


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


def check_parts(parts: Mapping[str, AttentionPart], query_shape: tuple[int, int], attention: str, places: int) -> None:
    """Ask the parts of a layer, by the names of their changes, about a short row, before anything is trained.

    Args:
        query_shape: heads, and the width of each.
        attention: which tokens a token attends to: full, left or right.
        places: of the longest row.

    Raises UserError for what does not have the shape or type that `AttentionPart` says, and if a query sees no key.
    """
    length, rows = query_shape[0] + 3, 2  # another number than that of the heads, so that swapped axes do not fit
    query = key = torch.zeros(rows, query_shape[0], length, query_shape[1])
    place_1K, scores = torch.arange(length)[None], (rows, query_shape[0], length, length)
    for name, part in parts.items():
        query, key = part.turn(query, key, place_1K, place_1K)
        for what, state in (("query", query), ("key", key)):
            if state.shape[:3] != scores[:3]:
                _refuse(
                    name, f"turn returns a {what} of shape {list(state.shape)}", f"give {list(scores[:3])} and a width"
                )
    for name, part in parts.items():
        score, shown = part.score(query, key, place_1K, place_1K), part.visible(place_1K, place_1K)
        for what, given in (("score", score), ("visible", shown)):
            if given is not None and not _broadcasts(given.shape, scores):
                mend = f"give one that broadcasts to {list(scores)}: rows, heads, queries, keys"
                _refuse(name, f"{what} returns shape {list(given.shape)}", mend)
        if shown is not None and shown.dtype != torch.bool:
            _refuse(name, f"visible returns {shown.dtype}", "give torch.bool, true where a query sees a key")

    place_1K = torch.arange(min(places, CHECKED))[None]
    size = place_1K.shape[1]
    sees_QK = torch.ones(size, size, dtype=torch.bool)
    sees_QK = sees_QK.tril() if attention == "left" else sees_QK.triu() if attention == "right" else sees_QK
    hiding = {name: shown for name, part in parts.items() if (shown := part.visible(place_1K, place_1K)) is not None}
    for name, shown in hiding.items():
        sees = shown & sees_QK
        # A row may end at any place from SHORTEST on: its last token must see itself or one before
        first = torch.where(sees.any(-1), sees.int().argmax(-1), size)
        ends = torch.arange(size).clamp_min(min(SHORTEST, size) - 1)
        if (blind := first > ends).any():
            at = int(blind.nonzero()[0, -1])
            cause = f"visible hides every key from the query at place {at} of a row that ends at {int(ends[at])}"
            _refuse(name, cause, "let each token see at least itself")
        sees_QK = sees


def _broadcasts(shape: Sequence[int], wanted: tuple[int, ...]) -> bool:
    at_end = wanted[len(wanted) - len(shape) :]
    return len(shape) <= len(wanted) and all(size in (1, most) for size, most in zip(shape, at_end, strict=True))


def _refuse(name: str, cause: str, mend: str) -> NoReturn:
    raise UserError(f"model.changes.{name}: {cause}", mend)


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
    share_BHQK = functional.dropout(_share(parts, score_BHQK, bias), dropout)
    read_BHQE = torch.matmul(share_BHQK, value)
    for part in parts:
        if (more := part.read(share_BHQK, changed.place_BQ, changed.place_1K)) is not None:
            read_BHQE = read_BHQE + more
    return read_BHQE.transpose(1, 2)


def _share(parts: Sequence[AttentionPart], score_BHQK: Tensor, bias: Tensor | None) -> Tensor:
    """The weights of the values."""
    share = next((part.share for part in parts if part.replaces_softmax), parts[0].share)
    return share(score_BHQK if bias is None else score_BHQK + bias)


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


def attend_watched(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    **further: Any,
) -> tuple[Tensor, None]:
    """As `attend`, and gives `module.keep` the scores, before keys are hidden, and the weights, both [B, H, Q, K]."""
    parts = find_parts(module) or [AttentionPart()]
    changed = apply_parts(parts, module.is_causal, query, key, attention_mask, scaling, further.get("place_BQ"))
    product_BHQK = torch.matmul(changed.query, changed.key.transpose(2, 3))
    bias = _make_bias(module, changed.query, changed.key, changed.mask, changed.bias)
    score_BHQK = product_BHQK if changed.bias is None else product_BHQK + changed.bias
    module.keep(score_BHQK, _share(parts, product_BHQK, bias))
    return attend(module, query, key, value, attention_mask, scaling, **further)


for name, function in ((PLAIN, attend), (CHANGED, attend_changed), (WATCHED, attend_watched)):
    AttentionInterface.register(name, function)
    AttentionMaskInterface.register(name, sdpa_mask)
