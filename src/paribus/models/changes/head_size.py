"""Heads whose keys and values have widths of their own (Vaswani et al., arXiv 1706.03762, section 6.2, table 3 B)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from torch import nn

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
        from paribus.models.sized_attention import SizedAttention

        shape = encoder.spec
        keys, values = shape.heads * shape.key_size, shape.heads * shape.value_size
        for layer in encoder.backbone.encoder.layer:
            layer.attention.self = attention = SizedAttention(layer.attention.self)
            if isinstance(attention.query, nn.Linear):  # another change may do without queries
                attention.query = nn.Linear(shape.hidden, keys)
            attention.key, attention.value = nn.Linear(shape.hidden, keys), nn.Linear(shape.hidden, values)
            layer.attention.output.dense = nn.Linear(values, shape.hidden)
