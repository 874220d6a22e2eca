"""Relative sinusoids with learned biases (Transformer-XL, arXiv 1901.02860, section 3.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.models.attention_part import AttentionPart
from paribus.models.change import Positions
from paribus.models.positions import find_distances, look_up, make_sinusoids

if TYPE_CHECKING:
    from paribus.models.bert import Bert


@dataclass(frozen=True)
class TransformerXL(Positions):
    """The score of query i and key j is ((q + u) k + (q + v) W R) / sqrt(width of a key), where R are the sinusoids of
    i - j.

    All layers share u and v, a vector for each head, and each has a matrix W, as in the authors' code. Unlike there,
    BERT's projections keep their biases. A model that sees both sides has sinusoids for both, as XLNet has.
    Distances above `clamp` have the sinusoids of `clamp`, as those that are longer than in training have there. A
    memory is that of the model (`models/memory.py`). Raises UserError for an odd width.
    """

    clamp: int | None = field(default=None, metadata=within(1, 10**6))
    unset_values: ClassVar[Mapping[str, Any]] = {"clamp": None}

    def check(self, shape: Bert) -> None:
        if shape.hidden % 2:
            raise UserError(f"sinusoids come in pairs, but the width is {shape.hidden}", "give an even model.hidden")

    def attention(self, shape: Bert, layer: int) -> AttentionPart:
        return TransformerXLPart(shape, self.clamp)

    def tie(self, parts: Sequence[AttentionPart]) -> None:
        for part in parts:
            part.content_HE, part.distance_HE = parts[0].content_HE, parts[0].distance_HE

    def forward_flops(self, shape: Bert, tokens: float, length: float) -> float:
        """Every query is multiplied by 2 length - 1 distances, and every key by u. The projection of the distances by W
        is left out: it is done once per batch, whatever its number of rows.
        """
        return tokens * shape.layers * 2.0 * (2 * length - 1 + 1) * shape.heads * shape.key_size


class TransformerXLPart(AttentionPart):
    """`content_HE` is the paper's u, `distance_HE` its v, `key` its W."""

    turn_order = 2

    def __init__(self, shape: Bert, clamp: int | None = None) -> None:
        super().__init__()
        self.clamp = clamp
        self.hidden, self.heads, self.scale = shape.hidden, shape.heads, shape.score_scale
        biases = (nn.Parameter(torch.empty(shape.heads, shape.key_size)) for _ in range(2))
        self.content_HE, self.distance_HE = biases
        self.key = nn.Linear(shape.hidden, shape.heads * shape.key_size, bias=False)
        self.dropout = nn.Dropout(shape.dropout)

    def score(self, query: Tensor, key: Tensor, place_Q: Tensor, place_K: Tensor) -> Tensor:
        """Queries come scaled; u and v are scaled alike."""
        farthest = key.shape[2] - 1
        distance_R = torch.arange(-farthest, farthest + 1, device=key.device)
        if self.clamp is not None:
            distance_R = distance_R.clamp(-self.clamp, self.clamp)
        sinusoid_RD = make_sinusoids(distance_R, self.hidden, "transformer_xl")
        distance_HRE = self.key(self.dropout(sinusoid_RD)).unflatten(-1, (self.heads, -1)).transpose(0, 1)
        content_HE1, bias_H1E = ((each * self.scale).to(key.dtype) for each in (self.content_HE, self.distance_HE))
        by_distance_BHQR = (query + bias_H1E[:, None]) @ distance_HRE.to(key.dtype).transpose(1, 2)
        by_content_BH1K = (key @ content_HE1[:, :, None]).transpose(2, 3)
        return look_up(by_distance_BHQR, farthest - find_distances(place_Q, place_K)) + by_content_BH1K
