"""Appends text to a row with a network that caches nothing: the row is read again for every token."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor


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
