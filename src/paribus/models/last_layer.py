"""Computes the last layer of an encoder only at the positions that heads read.

The other states are not needed: with 15% of the tokens predicted, its feed-forward network, queries and attention cost
15% of a whole layer. Losses and gradients are those of the whole layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.bert.modeling_bert import BertLayer
from transformers.models.roberta.modeling_roberta import RobertaLayer
from transformers.models.roberta_prelayernorm.modeling_roberta_prelayernorm import RobertaPreLayerNormLayer

MOST = 0.5  # share of the places of a row above which the whole layer is computed


class ReadPositions(NamedTuple):
    """Columns of each row, beginning with its first one, and the index of each flat position of [B, L] among them."""

    column_BQ: Tensor
    table_N: Tensor


def find_positions(read_P: Tensor, rows: int, width: int) -> ReadPositions | None:
    """The positions of each row that are read; rows with fewer repeat their first. None if there are too many to save
    time.
    """
    read_R = torch.unique(read_P)
    row_R = read_R // width
    count_B = torch.bincount(row_R, minlength=rows)
    most = 1 + int(count_B.max())
    if most > MOST * width:
        return None
    rank_R = torch.arange(1, len(read_R) + 1, device=read_R.device) - (count_B.cumsum(0) - count_B)[row_R]
    column_BQ = read_R.new_zeros(rows, most)
    column_BQ[row_R, rank_R] = read_R % width
    table_N = read_R.new_zeros(rows * width)
    table_N[read_R] = row_R * most + rank_R
    return ReadPositions(column_BQ, table_N)


class _LastLayer(nn.Module):
    """A layer that gives [B, Q, D] while `column_BQ` is set, and [B, L, D] otherwise."""

    column_BQ: Tensor | None = None
    attention: Any
    feed_forward_chunk: Any

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, *rest: object, **more: object
    ) -> Any:
        if self.column_BQ is None:
            return super().forward(hidden_states, attention_mask, *rest, **more)
        attention, seen_BLD = self.attention.self, self.before_attention(hidden_states)
        projected = attention.query(_take(seen_BLD, self.column_BQ)), attention.key(seen_BLD), attention.value(seen_BLD)
        query, key, value = (
            states.unflatten(-1, (-1, attention.attention_head_size)).transpose(1, 2) for states in projected
        )
        if attention_mask is not None and attention_mask.shape[2] > 1:
            attention_mask = attention_mask.take_along_dim(self.column_BQ[:, None, :, None], 2)
        attend = ALL_ATTENTION_FUNCTIONS[attention.config._attn_implementation]
        options: dict[str, Any] = {"dropout": attention.dropout.p if attention.training else 0.0}
        if hasattr(attention, "parts"):
            options |= {"place_BQ": self.column_BQ, "first_B": more.get("first_B")}
        read_BQHE, _ = attend(attention, query, key, value, attention_mask, scaling=attention.scaling, **options)
        return self.feed_forward_chunk(
            self.attention.output(read_BQHE.flatten(2), _take(hidden_states, self.column_BQ))
        )

    def before_attention(self, hidden_BLD: Tensor) -> Tensor:
        return hidden_BLD


class _LastBert(_LastLayer, BertLayer):  # type: ignore[no-untyped-call]
    pass


class _LastRoberta(_LastLayer, RobertaLayer):  # type: ignore[no-untyped-call]
    pass


class _LastPreNorm(_LastLayer, RobertaPreLayerNormLayer):  # type: ignore[no-untyped-call]
    def before_attention(self, hidden_BLD: Tensor) -> Tensor:
        normed_BLD: Tensor = self.attention.LayerNorm(hidden_BLD)
        return normed_BLD


KINDS: dict[type[nn.Module], type[_LastLayer]] = {
    BertLayer: _LastBert,
    RobertaLayer: _LastRoberta,
    RobertaPreLayerNormLayer: _LastPreNorm,
}


def allow_positions(layer: nn.Module) -> bool:
    """Make a layer computable at chosen positions if its class is a known one; weights and their names stay."""
    known = KINDS.get(type(layer))
    if known is not None:
        layer.__class__ = known
    return known is not None


@contextmanager
def computing_only(layer: Any, read: ReadPositions | None) -> Iterator[None]:
    """A context in which the layer gives the states of these positions alone; None: of all."""
    layer.column_BQ = None if read is None else read.column_BQ
    try:
        yield
    finally:
        layer.column_BQ = None


def _take(state_BLD: Tensor, column_BQ: Tensor) -> Tensor:
    """[B, Q, D]"""
    rows, width = state_BLD.shape[:2]
    flat_N = (torch.arange(rows, device=column_BQ.device)[:, None] * width + column_BQ).flatten()
    return state_BLD.flatten(0, 1).index_select(0, flat_N).view(*column_BQ.shape, -1)
