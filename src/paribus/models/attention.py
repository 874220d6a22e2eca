"""Attention for CPUs: two matrix products with a softmax between them, as `transformers` calls it.

On a CPU, `scaled_dot_product_attention` is slow backward (it computes in float32 and does not reach the matrix unit),
and it has no kernel for a learned bias. The plain form costs memory for [B, H, L, S] probabilities instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from paribus.core.errors import UserError
from paribus.models.attention_by_parts import Caller, attend_by_parts, make_bias
from paribus.models.attention_part import AttentionPart, Rows

PLAIN, CHANGED = "paribus_plain", "paribus_changed_sdpa"
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


def count_heads(module: Any) -> int:
    """How many heads its queries, keys and values have: twice as many if a part has projections of its own."""
    return int(module.num_attention_heads) * (1 + any(part.own_projections for part in find_parts(module)))


def check_parts(parts: Mapping[str, AttentionPart], query_shape: tuple[int, int], attention: str, places: int) -> None:
    """Ask the parts of a layer, by the names of their changes, about a short row, before anything is trained.

    Args:
        query_shape: heads, and the width of each.
        attention: which tokens a token attends to: full, left or right.
        places: of the longest row.

    Raises UserError for what does not have the shape or type that `AttentionPart` says, and if a query sees no key.
    """
    heads, width = query_shape
    length, rows = heads + 3, 2  # another number than that of the heads, so that swapped axes do not fit
    place_1K, own = torch.arange(length)[None], any(part.own_projections for part in parts.values())
    query = key = torch.zeros(rows, heads * (1 + own), length, width)
    wanted, scores = [*query.shape[:3]], (rows, heads, length, length)
    for name, part in parts.items():
        query, key = part.turn(query, key, place_1K, place_1K)
        for what, state in (("query", query), ("key", key)):
            if [*state.shape[:3]] != wanted:
                _refuse(name, f"turn returns a {what} of shape {list(state.shape)}", f"give {wanted} and a width")
    of_rows = Rows(query[:, :heads], key[:, :heads], torch.zeros(rows, dtype=torch.int64))
    for name, part in parts.items():
        score = part.score(of_rows.query, of_rows.key, place_1K, place_1K)
        shown = part.visible_in(of_rows, place_1K, place_1K)
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
    state = torch.zeros(1, heads, size, key.shape[3])
    of_rows = Rows(state, state, torch.zeros(1, dtype=torch.int64))
    for name, part in parts.items():
        if (shown := part.visible_in(of_rows, place_1K, place_1K)) is None:
            continue
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
    first_B: Tensor | None = None,
    **_: object,
) -> tuple[Tensor, None]:
    """[B, L, H, E], and no probabilities: what `transformers` asks of its attention functions.

    `attention_mask` is bool, true where a query sees a key, or is added to the scores; without one, a causal
    module hides what is to the right. If the module has `parts`, they change its queries, which are at `place_BQ`,
    keys and scores; `first_B` is that of their `Rows`. If it has `keep`, that gets the scores, before keys are hidden,
    and the weights of the values, both [B, H, Q, K].
    """

    def plain(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, bias: Tensor | None) -> Tensor:
        return _attend_plain(query, key, value, make_bias(module, query, key, mask, bias), 1.0, dropout)

    parts, keep = find_parts(module), getattr(module, "keep", None)
    if parts or keep:
        caller = Caller(module, parts or [AttentionPart()], dropout, plain, keep)
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
