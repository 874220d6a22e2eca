"""Attention of a layer that changes of the encoder have parts in: of all pairs, or of the blocks that are seen.

In blocks, a block of queries becomes a row of its own, with the keys that it may see. The result is that of all pairs;
time and memory grow with what is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from paribus.models.attention_part import KeyBlocks, Rows

if TYPE_CHECKING:
    from paribus.models.attention_part import AttentionPart

MOST: Final = 0.5  # share of all pairs above which blocks save no time

# (query [B, H, Q, E], key, value [B, H, K, E], mask: bool, bias: added to the scores) -> what is read [B, Q, H, E]
Kernel = Callable[[Tensor, Tensor, Tensor, Tensor | None, Tensor | None], Tensor]


class Caller(NamedTuple):
    """Whose attention is computed.

    Attributes:
        module: of `transformers`.
        parts: what changes do in it, in their order.
        dropout: of the weights of the values.
        kernel: attention, with this dropout, for scores that need no further scaling.
        keep: gets the scores, before keys are hidden, and the weights of the values, both [B, H, Q, K] of all pairs.
    """

    module: Any
    parts: Sequence[AttentionPart]
    dropout: float
    kernel: Kernel
    keep: Callable[[Tensor, Tensor], None] | None = None

    def score(self, query: Tensor, key: Tensor, place_BQ: Tensor, place_1K: Tensor) -> Tensor | None:
        """What parts add to the scores of turned queries and keys."""
        scores = [part.score(query, key, place_BQ, place_1K) for part in self.parts]
        added = [score for score in scores if score is not None]
        return sum(added[1:], start=added[0]) if added else None

    def weigh(
        self, query: Tensor, key: Tensor, mask: Tensor | None, place_BQ: Tensor, place_1K: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The scores, before keys are hidden, and the weights of the values, [B, H, Q, K]."""
        added, hidden = self.score(query, key, place_BQ, place_1K), make_bias(self.module, query, key, mask, None)
        score_BHQK = torch.matmul(query, key.transpose(2, 3))
        score_BHQK = score_BHQK if added is None else score_BHQK + added
        share = next((part.share for part in self.parts if part.replaces_softmax), self.parts[0].share)
        return score_BHQK, share(score_BHQK if hidden is None else score_BHQK + hidden)

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, place_BQ: Tensor, place_1K: Tensor
    ) -> Tensor:
        """[B, Q, H, E], with what parts add to scores and do with the weights of values."""
        if not any(part.needs_shares for part in self.parts):
            return self.kernel(query, key, value, mask, self.score(query, key, place_BQ, place_1K))
        _, share_BHQK = self.weigh(query, key, mask, place_BQ, place_1K)
        share_BHQK = functional.dropout(share_BHQK, self.dropout)
        read_BHQE = torch.matmul(share_BHQK, value)
        for part in self.parts:
            if (more := part.read(share_BHQK, place_BQ, place_1K)) is not None:
                read_BHQE = read_BHQE + more
        return read_BHQE.transpose(1, 2)


def attend_by_parts(
    caller: Caller,
    projected: tuple[Tensor, Tensor, Tensor],
    mask: Tensor | None,
    scaling: float,
    place_BQ: Tensor | None,
    first_B: Tensor | None,
) -> Tensor:
    """[B, Q, H, E] of projected queries, keys and values, as the parts change them.

    Args:
        mask: bool, true where a query sees a key, [B, 1, 1 or Q, K]; None: a causal module hides what is to the right.
        place_BQ: places of the queries; None if there is one for each key.
        first_B: as in `Rows`; None for rows of one segment.
    """
    parts, (query, key, value) = caller.parts, projected
    place_1K = torch.arange(key.shape[2], device=key.device)[None]
    place_BQ = place_1K if place_BQ is None else place_BQ
    for part in parts[:-1]:
        query, key = part.turn(query, key, place_BQ, place_1K)
    query, key = parts[-1].turn_scaled(query, key, place_BQ, place_1K, scaling)
    seer = query, key, value
    if own := any(part.own_projections for part in parts):
        (query, key, value), seer = zip(*(state.chunk(2, 1) for state in seer), strict=True)
    rows = Rows(query, key, place_1K.new_zeros(len(key)) if first_B is None else first_B)

    place_BG = next((places for part in parts if (places := part.seers(rows)) is not None), None)
    blocks = None if caller.keep else _choose_blocks(parts, rows, mask, place_BG)
    if blocks is None:
        shown = _hide(caller, rows, mask, place_BQ, place_1K)
        read_BQHE = caller.attend(query, key, value, shown, place_BQ, place_1K)
        weighed: tuple[Tensor, ...] = caller.weigh(query, key, shown, place_BQ, place_1K) if caller.keep else ()
    else:
        read_BQHE, weighed = _attend_in_blocks(caller, rows, value, mask, blocks, place_BG, place_BQ), ()
    if place_BG is not None and (blocks is not None or own):
        is_seer_BQG = place_BQ[:, :, None] == place_BG[:, None, :]
        at_BG, which_BQ = is_seer_BQG.int().argmax(1).expand(len(key), -1), is_seer_BQG.int().argmax(2)
        is_seer_BQ = is_seer_BQG.any(2)
        if mask is not None and mask.shape[2] > 1:
            mask = mask.take_along_dim(at_BG[:, None, :, None], 2)
        asking, place_BG = _take(seer[0], at_BG), place_BG.clamp(min=0)
        read_BGHE = caller.attend(asking, *seer[1:], mask, place_BG, place_1K)
        seen_BQHE = read_BGHE.take_along_dim(which_BQ[:, :, None, None], 1)
        read_BQHE = torch.where(is_seer_BQ[:, :, None, None], seen_BQHE, read_BQHE)
        if caller.keep:
            of_seers = caller.weigh(asking, seer[1], mask, place_BG, place_1K)
            weighed = tuple(
                torch.where(is_seer_BQ[:, None, :, None], _take(one, which_BQ), other)
                for one, other in zip(of_seers, weighed, strict=True)
            )
    if caller.keep:
        caller.keep(*weighed)
    return read_BQHE


def _hide(caller: Caller, rows: Rows, mask: Tensor | None, place_BQ: Tensor, place_1K: Tensor) -> Tensor | None:
    """The mask with what the parts hide."""
    visible = [shown for part in caller.parts if (shown := part.visible_in(rows, place_BQ, place_1K)) is not None]
    if visible and mask is None and caller.module.is_causal:
        mask = (place_1K[:, None, :] <= place_BQ[:, :, None])[:, None]
    for shown in visible:
        mask = shown if mask is None else mask & shown
    return mask


def _choose_blocks(
    parts: Sequence[AttentionPart], rows: Rows, mask: Tensor | None, place_BG: Tensor | None
) -> KeyBlocks | None:
    """The blocks of the part that shows the fewest; None if all pairs are as fast, or if another part needs them."""
    length = rows.key.shape[2]
    if mask is not None and mask.shape[2] > 1:
        return None
    chosen, blocks = None, None
    for part in parts:
        offered = part.blocks(length, rows.key.device)
        if offered is not None and (blocks is None or offered.width < blocks.width):
            chosen, blocks = part, offered
    if blocks is None:
        return None
    for part in parts:
        if part is not chosen and not (part.fits_blocks if blocks.count_HNC is None else part.leaves_scores):
            return None
    seers = 0 if place_BG is None else place_BG.shape[1]
    pairs = blocks.table_HNC.shape[1] * blocks.size * (blocks.width + seers) + seers * length
    return blocks if pairs <= MOST * length**2 else None


def _attend_in_blocks(
    caller: Caller,
    rows: Rows,
    value_BHLE: Tensor,
    mask: Tensor | None,
    blocks: KeyBlocks,
    place_BG: Tensor | None,
    place_BQ: Tensor,
) -> Tensor:
    """[B, Q, H, E]; `place_BG` are seen by all queries. What the tokens at them read is without meaning."""
    (batch, heads, length, _), size, (_, count, _) = rows.key.shape, blocks.size, blocks.table_HNC.shape
    device, further = rows.key.device, count * size - length
    query = rows.query
    if some := place_BQ.shape != (1, length):  # any query for the places at which there is none: it is not read
        slot_BL = place_BQ.new_zeros(batch, length).scatter_(
            1, place_BQ, torch.arange(place_BQ.shape[1], device=device).expand_as(place_BQ)
        )
        query = _take(query, slot_BL)
    query = functional.pad(query, (0, 0, 0, further)).view(batch, heads, count, size, -1).transpose(1, 2).flatten(0, 1)
    number_NHC = blocks.table_HNC.clamp(min=0).transpose(0, 1) + count * torch.arange(heads, device=device)[:, None]

    def gather(state_BHLE: Tensor) -> Tensor:
        """[B N, H, M, E]: the keys or values that each block of queries reads."""
        block_BRSE = functional.pad(state_BHLE, (0, 0, 0, further)).reshape(batch, heads * count, size, -1)
        read = block_BRSE.index_select(1, number_NHC.flatten())
        return read.view(batch * count, heads, -1, state_BHLE.shape[-1])

    key, value = gather(rows.key), gather(value_BHLE)
    offset_S = torch.arange(size, device=device)
    place_NS = torch.arange(count * size, device=device).view(count, size)
    place_HNM = (blocks.table_HNC[..., None] * size + offset_S).flatten(2)
    counted_BL = torch.ones(1, length, dtype=torch.bool, device=device) if mask is None else mask[:, 0, 0]
    local_BL = counted_BL
    if place_BG is not None and blocks.count_HNC is None:  # as neighbors they do not count again
        seer_BL = (torch.arange(length, device=device)[:, None] == place_BG[:, None, :]).any(2)
        local_BL = local_BL & ~seer_BL
    local_BL = functional.pad(local_BL, (0, further))
    shown = (place_HNM >= 0) & local_BL[:, place_HNM.clamp(min=0)]
    shown = shown.transpose(1, 2)[:, :, :, None]  # [B or 1, N, H or 1, 1, M]
    if blocks.count_HNC is None:
        for part in caller.parts:
            if (visible := part.visible(place_NS, place_HNM[0])) is not None:
                shown = shown & visible
        if caller.module.is_causal:
            shown = shown & (place_HNM[0][:, None, :] <= place_NS[:, :, None])[:, None]
    shown = shown.expand(batch, -1, -1, size, -1)
    place_KM = place_HNM[0].repeat(batch, 1)
    if place_BG is not None:
        at_BG = place_BG.clamp(min=0).expand(batch, -1)
        seen = (_take(state, at_BG).repeat_interleave(count, 0) for state in (rows.key, value_BHLE))
        key, value = (torch.cat(pair, 2) for pair in zip((key, value), seen, strict=True))
        real_BG = (place_BG >= 0) & counted_BL.expand(batch, -1).gather(1, at_BG)
        real = real_BG[:, None, None, None].expand(-1, *shown.shape[1:4], -1)
        shown = torch.cat([shown, real], 4)
        place_KM = torch.cat([place_KM, at_BG.repeat_interleave(count, 0)], 1)

    if blocks.count_HNC is None:
        bias = caller.score(query, key, place_NS.repeat(batch, 1), place_KM)
    else:
        often_NHM = blocks.count_HNC.clamp(min=1).log().repeat_interleave(size, 2).transpose(0, 1)
        often_NHM = functional.pad(often_NHM, (0, key.shape[2] - often_NHM.shape[2]))
        bias = often_NHM[:, :, None].repeat(batch, 1, 1, 1)
    read = caller.kernel(query, key, value, shown.flatten(0, 1), bias)  # [B N, S, H, E]
    read_BLHE = read.reshape(batch, count * size, heads, -1)[:, :length]
    return read_BLHE.take_along_dim(place_BQ[:, :, None, None], 1) if some else read_BLHE


def _take(state_BHLE: Tensor, at_BQ: Tensor) -> Tensor:
    """[B, H, Q, E]: the states at these places."""
    return state_BHLE.take_along_dim(at_BQ[:, None, :, None], 2)


def make_bias(
    module: Any, query: Tensor, key: Tensor, mask: Tensor | None, position_bias: Tensor | None
) -> Tensor | None:
    """What is added to the scores, in their type. Hidden keys get the lowest number that it has."""
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
