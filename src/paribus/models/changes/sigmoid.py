"""A sigmoid of each score in place of the softmax (Ramapuram et al., arXiv 2409.04431)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from paribus.models.attention_part import AttentionPart
from paribus.models.change import Change

if TYPE_CHECKING:
    from paribus.models.bert import Bert


@dataclass(frozen=True)
class Sigmoid(Change):
    """The weight of a value is sigmoid(score + bias), so that weights do not sum to 1.

    `bias=null` is -log n, which makes weights of about 1 / n at the start. The paper's n is the length of all rows;
    here it is the number of keys that the query sees, so that padding changes nothing.
    """

    bias: float | None = None
    sets: ClassVar[frozenset[str]] = frozenset({"softmax"})
    exact_at_places: ClassVar[bool] = True

    def attention(self, shape: Bert, layer: int) -> AttentionPart:
        return SigmoidPart(self.bias)


class SigmoidPart(AttentionPart):
    """Weighs each value by itself."""

    def __init__(self, bias: float | None) -> None:
        super().__init__()
        self.bias = bias

    def share(self, score_BHQK: Tensor) -> Tensor:
        if self.bias is not None:
            return torch.sigmoid(score_BHQK + self.bias)
        hidden = torch.finfo(score_BHQK.dtype).min / 2
        seen_BHQ1 = (score_BHQK > hidden).sum(-1, keepdim=True).clamp(min=1)
        return torch.sigmoid(score_BHQK - seen_BHQ1.to(score_BHQK.dtype).log())
