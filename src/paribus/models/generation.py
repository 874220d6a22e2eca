"""Appends text to a row with a network that caches nothing: the row is read again for every token.

Greedy decoding: always the likeliest next token.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import cast

import torch
from torch import Tensor

from paribus.models.ensemble import Ensemble, mean, pairs_of
from paribus.models.heads.head import TokenHead
from paribus.models.network import Batch, Network


class RowWriter(ABC):
    """One decoding step: from the last token [B] of each row (None in the first step) to the states [B, D].

    Attributes:
        ids_BL: int64 [B, L], what is read and written, and padding.
        length_B: int64, tokens of each row.
    """

    def __init__(self, ids_BL: Tensor, length_B: Tensor, most: int, pad: int) -> None:
        self.row_B = torch.arange(len(length_B), device=length_B.device)
        self.length_B = length_B.clone()
        read_BL = ids_BL[:, : int(length_B.max())]
        behind_BL = torch.arange(read_BL.shape[1], device=read_BL.device) >= length_B[:, None]
        room_BM = read_BL.new_full((len(read_BL), most), pad)
        self.ids_BL = torch.cat([read_BL.masked_fill(behind_BL, pad), room_BM], dim=1)

    def __call__(self, token_B: Tensor | None) -> Tensor:
        if token_B is not None:
            self.ids_BL[self.row_B, self.length_B] = token_B
            self.length_B = self.length_B + 1
        return self.read()

    @abstractmethod
    def read(self) -> Tensor:
        """[B, D]: the states that give the next token."""


def greedy(model: Network | Ensemble, head: TokenHead | Ensemble, batch: Batch, most: int) -> list[list[int]]:
    """What the model writes for each row: at most `most` tokens, up to its end-of-sequence token, which is left out.

    An ensemble decodes from the mean of its models' logits. Targets in the batch are not read.
    """
    pairs = pairs_of(model, head)
    writers = [(cast(TokenHead, part), network.writer(batch, most)) for network, part in pairs]
    end = pairs[0][0].vocabulary.sep
    ended_B = torch.zeros(len(batch["length_B"]), dtype=torch.bool, device=batch["ids_BL"].device)
    written: list[Tensor] = []
    while len(written) < most and not bool(ended_B.all()):
        last_B = written[-1] if written else None
        token_B = mean([part.scores(write(last_B)) for part, write in writers]).argmax(-1)
        written.append(torch.where(ended_B, end, token_B))
        ended_B |= token_B == end
    rows = torch.stack(written, dim=1).tolist()
    return [row[: row.index(end)] if end in row else row for row in rows]
