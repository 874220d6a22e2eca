"""Heads whose keys and values have widths of their own (Vaswani et al., arXiv 1706.03762, section 6.2, table 3 B)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.models.change import Change

if TYPE_CHECKING:
    from paribus.models.bert import Bert
    from paribus.models.encoder import Encoder


@dataclass(frozen=True)
class HeadSize(Change):
    """Queries and keys of a head are `key` wide and its values `value`; null is hidden / heads, as everywhere else.

    With both given, more heads are more weights. With `key` alone, the weights of values and output stay. Raises
    UserError for a width below 1, and if neither is given.
    """

    key: int | None = field(default=64, metadata=within(1, 10**5))
    value: int | None = field(default=64, metadata=within(1, 10**5))
    sets: ClassVar[frozenset[str]] = frozenset({"width of heads"})
    exact_at_places: ClassVar[bool] = True

    def check(self, shape: Bert) -> None:
        if self.key is None and self.value is None:
            raise UserError("a head size has neither key nor value", "give one of them, such as key=16")
        for name, size in (("key", self.key), ("value", self.value)):
            if size is not None and size < 1:
                raise UserError(f"a head size has {name}={size}, below 1", "give a width, or null for hidden / heads")

    def key_size(self, shape: Bert) -> int | None:
        return self.key

    def value_size(self, shape: Bert) -> int | None:
        return self.value

    def alter(self, encoder: Encoder) -> None:
        shape = encoder.spec
        keys, values = shape.heads * shape.key_size, shape.heads * shape.value_size
        for layer in encoder.backbone.encoder.layer:
            layer.attention.self = attention = SizedAttention(layer.attention.self)
            if isinstance(attention.query, nn.Linear):  # another change may do without queries
                attention.query = nn.Linear(shape.hidden, keys)
            attention.key, attention.value = nn.Linear(shape.hidden, keys), nn.Linear(shape.hidden, values)
            layer.attention.output.dense = nn.Linear(values, shape.hidden)


class SizedAttention(nn.Module):
    """The self-attention of a layer of `transformers`, which takes keys and values for equally wide, without that."""

    def __init__(self, given: Any) -> None:
        super().__init__()
        self.config, self.is_causal, self.scaling = given.config, given.is_causal, given.scaling
        self.num_attention_heads = given.num_attention_heads
        self.query, self.key, self.value, self.dropout = given.query, given.key, given.value, given.dropout

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None, **_: object) -> tuple[Tensor, None]:
        """[B, L, heads x width of a value], and no probabilities."""
        query, key, value = (
            project(hidden_states).unflatten(-1, (self.num_attention_heads, -1)).transpose(1, 2)
            for project in (self.query, self.key, self.value)
        )
        attend = ALL_ATTENTION_FUNCTIONS[self.config._attn_implementation]
        dropout = self.dropout.p if self.training else 0.0
        read_BLHE, _ = attend(self, query, key, value, attention_mask, dropout=dropout, scaling=self.scaling)
        return read_BLHE.flatten(2), None
