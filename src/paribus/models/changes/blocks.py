"""Blocks of neighbors, of random places and of the ends of a row (BigBird, arXiv 2007.14062, section 2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paribus.core.errors import UserError
from paribus.core.noise import Noise
from paribus.core.settings import within
from paribus.models.attention_part import AttentionPart, KeyBlocks, Rows
from paribus.models.change import Change

if TYPE_CHECKING:
    from paribus.models.bert import Bert

DRAWS = ("uniform", "published")
LONGEST: Final = 4096  # tokens for which the published code plans
PLANNED = (1024, 2048, 3072, LONGEST)
REACH: Final = 1024  # tokens among which it draws


@dataclass(frozen=True)
class Blocks(Change):
    """A token sees its own block in a `window` of blocks, `random` others and, if `ends`, the first and the last one.

    With `ends` the first and last block of a row see all. A row ends where the longest of its batch does. Random blocks
    are fixed and differ between layers and heads. `draw="uniform"` draws them without repeats among the blocks that are
    not seen anyway. `draw="published"` has those of the authors' code for rows of 1024, 2048, 3072 and 4096 tokens: all
    are among the first 1024 tokens, and a drawn block that is seen anyway, such as the last one of 1024 tokens, counts
    twice. Raises UserError for blocks that do not divide a row.
    """

    size: int = field(default=64, metadata=within(1, 10**5))
    window: int = field(default=3, metadata=within(1, 10**4))
    random: int = field(default=3, metadata=within(0, 10**4))
    ends: bool = True
    draw: str = "uniform"
    seed: int = 0
    sets: ClassVar[frozenset[str]] = frozenset({"visibility"})
    exact_at_places: ClassVar[bool] = True

    def check(self, shape: Bert) -> None:
        if self.size < 1 or self.random < 0:
            raise UserError(f"blocks have size={self.size} and random={self.random}", "set size=64 and random=3")
        if self.window < 1 or self.window % 2 == 0:
            raise UserError(f"blocks have window={self.window}, which has no middle", "give an odd number of blocks")
        if self.draw not in DRAWS:
            raise UserError(f"blocks have unknown draw={self.draw}", f"use {' or '.join(DRAWS)}")
        if self.draw == "published" and (self.window != 3 or not self.ends or REACH // self.size < self.random + 5):
            cause = "draw=published is a plan for window=3, ends=true and blocks that fit 5 + random times into 1024"
            raise UserError(cause, "set these, or draw=uniform")
        if shape.attention != "full":
            cause = f"blocks show both sides, but model.attention={shape.attention}"
            raise UserError(cause, "set model.attention=full")

    def check_length(self, length: int, key: str) -> None:
        if length % self.size:
            cause = f"{key}={length} is not divided by the blocks of size={self.size}"
            raise UserError(cause, f"set {key}={ceil(length / self.size) * self.size}, or another size")
        if self.draw == "published" and length not in PLANNED:
            cause = f"draw=published has no plan for {key}={length}"
            raise UserError(cause, f"set {key} to {', '.join(map(str, PLANNED))}, or draw=uniform")

    def attention(self, shape: Bert, layer: int) -> AttentionPart:
        return BlocksPart(self, shape.heads, shape.attention_of(layer))

    def seen(self, shape: Bert, length: float) -> float:
        whole = ceil(length / self.size)
        seen = (count_keys(self, whole, shape.heads, 0) > 0).sum(2).double().mean()
        return float(seen) * min(self.size, length)

    def lacks_class(self, shape: Bert) -> str | None:
        return "BigBird in transformers has no random blocks in evaluation"


@lru_cache(maxsize=512)
def count_keys(settings: Blocks, blocks: int, heads: int, layer: int) -> Tensor:
    """int64 [H, N, N]: how often a block of queries (row) sees a block of keys, in a row of that many blocks."""
    number = np.arange(blocks)
    near = np.abs(number[:, None] - number) <= settings.window // 2
    count = np.repeat(near[None].astype(np.int64), heads, axis=0)
    if settings.ends:
        count[:, :, [0, -1]] = 1
    if settings.draw == "published":
        table_HNR = plan_published(heads, settings.size, settings.random, layer)[:, : max(blocks - 2, 0)]
        head_P, row_P, column_P = np.nonzero(table_HNR < blocks)
        np.add.at(count, (head_P, row_P + 1, table_HNR[head_P, row_P, column_P]), 1)
    else:
        bits = Noise.of(settings.seed, [layer], np.arange(heads)).bits("blocks", blocks * blocks)
        order_HNN = np.where(count > 0, np.uint64(2**32), bits.reshape(count.shape).astype(np.uint64))
        chosen_HNR = np.argsort(order_HNN, axis=2, kind="stable")[:, :, : settings.random]
        np.put_along_axis(count, chosen_HNR, 1, 2)  # fewer are left in a short row: the others are seen anyway
    if settings.ends:
        count[:, [0, -1]] = 1
    return torch.from_numpy(count)


def plan_published(heads: int, size: int, random: int, layer: int) -> NDArray[np.int64]:
    """[H, N - 2, R]: the random blocks of the inner blocks of 4096 tokens, as the authors' code draws them.

    Candidates are blocks 1 to 1024 / size - 1 outside of the window; for the last two inner blocks inside of it too.
    """
    draw, blocks, last = np.random.RandomState(layer), LONGEST // size, REACH // size - 1
    table_HNR = np.zeros((heads, blocks - 2, random), np.int64)
    for head in range(heads):
        for block in range(1, blocks - 1):
            candidates = np.arange(1, last + 1)
            if block < blocks - 3:
                candidates = candidates[np.abs(candidates - block) > 1]
            table_HNR[head, block - 1] = draw.permutation(candidates)[:random]
    return table_HNR


class BlocksPart(AttentionPart):
    """Hides what is outside of the blocks, and counts double what is seen twice."""

    def __init__(self, settings: Blocks, heads: int, layer: int) -> None:
        super().__init__()
        self.settings, self.heads, self.layer = settings, heads, layer

    def count(self, length: int) -> Tensor:
        return count_keys(self.settings, ceil(length / self.settings.size), self.heads, self.layer)

    def spread(self, count_HNN: Tensor, place_Q: Tensor, place_K: Tensor) -> Tensor:
        """[B, H, Q, K] of a number for each pair of blocks."""
        size = self.settings.size
        spread = count_HNN.to(place_K.device)[:, (place_Q // size)[:, :, None], (place_K // size)[:, None, :]]
        return spread.transpose(0, 1)

    def visible(self, place_Q: Tensor, place_K: Tensor) -> Tensor:
        return self.spread(self.count(place_K.shape[1]) > 0, place_Q, place_K)

    def score(self, query: Tensor, key: Tensor, place_Q: Tensor, place_K: Tensor) -> Tensor | None:
        count_HNN = self.count(key.shape[2])
        return self.spread(count_HNN.clamp(min=1).log(), place_Q, place_K) if count_HNN.max() > 1 else None

    def seers(self, rows: Rows) -> Tensor | None:
        if not self.settings.ends:
            return None
        place_L, size = torch.arange(rows.key.shape[2], device=rows.key.device), self.settings.size
        number_L = place_L // size
        return place_L[(number_L == 0) | (number_L == number_L[-1])][None]

    def blocks(self, length: int, device: torch.device) -> KeyBlocks:
        """What the blocks inside of a row see besides its ends."""
        count_HNN = self.count(length).clone()
        if self.settings.ends:
            count_HNN[:, :, [0, -1]] -= 1
            count_HNN[:, [0, -1]] = 0
        columns = int((count_HNN > 0).sum(2).max())
        count_HNC, table_HNC = count_HNN.sort(dim=2, descending=True, stable=True)
        table_HNC = table_HNC.where(count_HNC > 0, -1)[..., :columns]
        return KeyBlocks(self.settings.size, table_HNC.to(device), count_HNC[..., :columns].to(device))
