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

from paribus.models.attention import count_heads

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


class LastLayer(nn.Module):
    """A layer that gives [B, Q, D] while `column_BQ` is set, and [B, L, D] otherwise.

    `decodes`: whether a head on tokens reads its states, for layers that decode.
    """

    column_BQ: Tensor | None = None
    decodes: bool = False
    attention: Any
    feed_forward_chunk: Any

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, *rest: object, **more: object
    ) -> Any:
        if self.column_BQ is None:
            return super().forward(hidden_states, attention_mask, *rest, **more)
        attention, seen_BLD = self.attention.self, self.before_attention(hidden_states)
        query_BQD = attention.query(take(seen_BLD, self.column_BQ))
        read_BQD = self.attend(query_BQD, attention.key(seen_BLD), attention.value(seen_BLD), attention_mask, **more)
        return self.feed_forward_chunk(self.attention.output(read_BQD, take(hidden_states, self.column_BQ)))

    def attend(
        self, query_BQD: Tensor, key_BLD: Tensor, value_BLD: Tensor, attention_mask: Tensor | None, **more: object
    ) -> Tensor:
        """[B, Q, D]: what queries in the columns, or at all places, read."""
        attention = self.attention.self
        query, key, value = (
            states.view(*states.shape[:2], count_heads(attention), -1).transpose(1, 2)
            for states in (query_BQD, key_BLD, value_BLD)
        )
        if self.column_BQ is not None and attention_mask is not None and attention_mask.shape[2] > 1:
            attention_mask = attention_mask.take_along_dim(self.column_BQ[:, None, :, None], 2)
        attend = ALL_ATTENTION_FUNCTIONS[attention.config._attn_implementation]
        options: dict[str, Any] = {"dropout": attention.dropout.p if attention.training else 0.0}
        if hasattr(attention, "parts"):
            options |= {"place_BQ": self.column_BQ, "first_B": more.get("first_B")}
        read_BQHE, _ = attend(attention, query, key, value, attention_mask, scaling=attention.scaling, **options)
        read_BQD: Tensor = read_BQHE.flatten(2)
        return read_BQD

    def before_attention(self, hidden_BLD: Tensor) -> Tensor:
        return hidden_BLD


class _LastBert(LastLayer, BertLayer):  # type: ignore[no-untyped-call]
    pass


class _LastRoberta(LastLayer, RobertaLayer):  # type: ignore[no-untyped-call]
    pass


class _LastPreNorm(LastLayer, RobertaPreLayerNormLayer):  # type: ignore[no-untyped-call]
    def before_attention(self, hidden_BLD: Tensor) -> Tensor:
        normed_BLD: Tensor = self.attention.LayerNorm(hidden_BLD)
        return normed_BLD


KINDS: dict[type[nn.Module], type[LastLayer]] = {
    BertLayer: _LastBert,
    RobertaLayer: _LastRoberta,
    RobertaPreLayerNormLayer: _LastPreNorm,
}


def allow_positions(layer: nn.Module) -> bool:
    """Make a layer computable at chosen positions if its class is a known one; weights and their names stay."""
    known = KINDS.get(type(layer))
    if known is not None:
        layer.__class__ = known
    return isinstance(layer, LastLayer)


@contextmanager
def computing_only(layer: Any, read: ReadPositions | None, decodes: bool) -> Iterator[None]:
    """A context in which the layer gives the states of these positions alone; None: of all. `decodes`: for a head on
    tokens.
    """
    layer.column_BQ, layer.decodes = None if read is None else read.column_BQ, decodes
    try:
        yield
    finally:
        layer.column_BQ, layer.decodes = None, False


def take(state_BLD: Tensor, column_BQ: Tensor) -> Tensor:
    """[B, Q, D]"""
    rows, width = state_BLD.shape[:2]
    flat_N = (torch.arange(rows, device=column_BQ.device)[:, None] * width + column_BQ).flatten()
    return state_BLD.flatten(0, 1).index_select(0, flat_N).view(*column_BQ.shape, -1)
