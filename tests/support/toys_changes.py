"""Changes of an encoder as a user would write them; nothing in the package names them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from paribus.models.attention_part import AttentionPart
from paribus.models.bert import Bert
from paribus.models.change import Change, Positions
from paribus.models.encoder import Encoder


@dataclass(frozen=True)
class Relative(Change):
    """A vector for each distance, added to keys and values (Shaw et al., arXiv 1803.02155, section 3.2)."""

    most: int = 3
    exact_at_places: ClassVar[bool] = True

    def attention(self, shape: Bert, layer: int) -> AttentionPart:
        return RelativePart(self.most, shape.key_size, shape.value_size)

    def std(self, shape: Bert, name: str) -> float | None:
        return 0.5 if name.endswith("of_key_RE") else None


class RelativePart(AttentionPart):
    initial_values: ClassVar[dict[str, float]] = {"of_value_RE": 0.25}

    def __init__(self, most: int, key: int, value: int) -> None:
        super().__init__()
        self.most = most
        self.of_key_RE = nn.Parameter(torch.empty(2 * most + 1, key))
        self.of_value_RE = nn.Parameter(torch.empty(2 * most + 1, value))

    def clip(self, place_Q: Tensor, place_K: Tensor) -> Tensor:
        return (place_K[:, None, :] - place_Q[:, :, None]).clamp(-self.most, self.most) + self.most

    def score(self, query: Tensor, key: Tensor, place_Q: Tensor, place_K: Tensor) -> Tensor:
        every_BHQR = torch.matmul(query, self.of_key_RE.T.to(query.dtype))
        index = self.clip(place_Q, place_K)[:, None].expand(*every_BHQR.shape[:3], -1)
        return every_BHQR.gather(3, index)

    def read(self, share_BHQK: Tensor, place_Q: Tensor, place_K: Tensor) -> Tensor:
        vector = self.of_value_RE[self.clip(place_Q, place_K)].to(share_BHQK.dtype)
        return torch.einsum("bhqk,bqke->bhqe", share_BHQK, vector.expand(len(share_BHQK), -1, -1, -1))


@dataclass(frozen=True)
class Alternating(Change):
    """Even layers see their neighbors, odd ones see all."""

    exact_at_places: ClassVar[bool] = True

    def attention(self, shape: Bert, layer: int) -> AttentionPart | None:
        return NeighborsPart(layer % 2 == 0)


class NeighborsPart(AttentionPart):
    def __init__(self, local: bool) -> None:
        super().__init__()
        self.local = local

    def visible(self, place_Q: Tensor, place_K: Tensor) -> Tensor | None:
        near = (place_Q[:, None, :, None] - place_K[:, None, None, :]).abs() <= 1
        return near if self.local else None


@dataclass(frozen=True)
class Buckets(Positions):
    """A learned score for each head and distance, one table for all layers, in place of learned positions (T5)."""

    one_part: ClassVar[bool] = True

    def attention(self, shape: Bert, layer: int) -> AttentionPart:
        return BucketsPart(shape.heads)


class BucketsPart(AttentionPart):
    def __init__(self, heads: int) -> None:
        super().__init__()
        self.score_RH = nn.Parameter(torch.empty(17, heads))

    def score(self, query: Tensor, key: Tensor, place_Q: Tensor, place_K: Tensor) -> Tensor:
        distance = (place_K[:, None, :] - place_Q[:, :, None]).clamp(-8, 8) + 8
        return self.score_RH[distance].permute(0, 3, 1, 2)


@dataclass(frozen=True)
class Squares(Change):
    """Squares of scores in place of a softmax."""

    exact_at_places: ClassVar[bool] = True

    def attention(self, shape: Bert, layer: int) -> AttentionPart:
        return SquaresPart()


class SquaresPart(AttentionPart):
    def share(self, score_BHQK: Tensor) -> Tensor:
        return score_BHQK.relu().square()


@dataclass(frozen=True)
class NormedHeads(Change):
    """Queries and keys of one length, scaled by a learned vector (QK-norm)."""

    exact_at_places: ClassVar[bool] = True

    def attention(self, shape: Bert, layer: int) -> AttentionPart:
        return NormedHeadsPart(shape.key_size)


class NormedHeadsPart(AttentionPart):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.query_norm, self.key_norm = nn.RMSNorm(width), nn.RMSNorm(width)

    def turn(self, query: Tensor, key: Tensor, place_Q: Tensor, place_K: Tensor) -> tuple[Tensor, Tensor]:
        return self.query_norm(query), self.key_norm(key)


@dataclass(frozen=True)
class MeanOfRow(Change):
    """The last layer's output minus the mean of its row: no place has its state alone. Says nothing of places."""

    def alter(self, encoder: Encoder) -> None:
        output = encoder.backbone.encoder.layer[-1].output
        output.register_forward_hook(lambda _, __, state_BLD: state_BLD - state_BLD.mean(1, keepdim=True))
