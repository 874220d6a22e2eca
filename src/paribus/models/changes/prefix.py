"""A prefix that is seen by all, and after it only what is to the left (UniLM, arXiv 1905.03197, figure 1; T5, section
3.2.1).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.models.attention_part import AttentionPart, Rows
from paribus.models.change import Change

if TYPE_CHECKING:
    from paribus.models.bert import Bert


@dataclass(frozen=True)
class Prefix(Change):
    """A token sees those to its left, itself and the prefix: the first `length` tokens of a row.

    Without a length it is the first segment, and all of a row that has only one. With length 0 attention is that of
    `model.attention=left`, but [CLS] still summarizes a row. Raises UserError for a negative length.
    """

    length: int | None = field(default=None, metadata=within(0, 10**6))
    sets: ClassVar[frozenset[str]] = frozenset({"visibility"})
    exact_at_places: ClassVar[bool] = True

    def check(self, shape: Bert) -> None:
        if self.length is not None and self.length < 0:
            raise UserError(f"a prefix has length={self.length}, below 0", "give the number of tokens, or null")
        if shape.attention != "full":
            cause = f"model.attention={shape.attention} hides a part of the prefix"
            raise UserError(cause, "set model.attention=full")

    @property
    def reads_both_sides(self) -> bool:
        return self.length is None

    def attention(self, shape: Bert, layer: int) -> AttentionPart:
        return PrefixPart(self.length)

    def seen(self, shape: Bert, length: float) -> float:
        """Rows count as having one segment if the prefix is the first."""
        prefix = length if self.length is None else min(self.length, length)
        return (length + 1) / 2 + prefix * max(prefix - 1, 0) / (2 * length)


class PrefixPart(AttentionPart):
    def __init__(self, length: int | None) -> None:
        super().__init__()
        self.length = length

    def visible_in(self, rows: Rows, place_Q: Tensor, place_K: Tensor) -> Tensor:
        left_B1QK = place_K[:, None, None, :] <= place_Q[:, None, :, None]
        if self.length is not None:
            return left_B1QK | (place_K < self.length)
        first_B1 = rows.first_B.where(rows.first_B > 0, rows.key.shape[2])[:, None]
        return left_B1QK | (place_K < first_B1)[:, None, None, :]
