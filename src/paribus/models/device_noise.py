"""The counter hash of `core.noise` for tensors: the same bits on any device.

A sample that an objective draws inside a step (ELECTRA's replaced tokens, arXiv 2003.10555, section 2) depends only on
the row's noise key, the stream and the position: not on the microbatch, the order of rows, the rank or a resume.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from paribus.core.noise import FIRST, GOLDEN, SECOND, stream_number

KEY: Final = "row_key_B"  # of a batch whose collator adds the row keys


def _signed(word: int) -> int:
    """The int64 with the same bits as this 64-bit word."""
    return word - (1 << 64) if word >= 1 << 63 else word


_GOLDEN, _FIRST, _SECOND = (_signed(int(word)) for word in (GOLDEN, FIRST, SECOND))


def _shift_right(value: Tensor, bits: int) -> Tensor:
    """A logical shift: int64 has only an arithmetic one."""
    return (value >> bits) & ((1 << (64 - bits)) - 1)


def mix64(value: Tensor) -> Tensor:
    """`core.noise.mix64` in int64 arithmetic, which wraps as uint64 does."""
    value = (value ^ _shift_right(value, 30)) * _FIRST
    value = (value ^ _shift_right(value, 27)) * _SECOND
    return value ^ _shift_right(value, 31)


@dataclass(frozen=True)
class DeviceNoise:
    """`core.noise.Noise` on a device. row_B: int64 [B], the bits of the rows' keys."""

    row_B: Tensor

    @classmethod
    def of(cls, batch: Mapping[str, Any]) -> DeviceNoise:
        """The noise of a batch whose collator has `row_keys`."""
        return cls(batch[KEY])

    def bits(self, stream: str, n: int) -> Tensor:
        """int64 [B, n]: the stream's draws of 32 bits at positions 0..n-1; a larger n only adds columns."""
        row_BN = torch.arange(len(self.row_B), device=self.row_B.device)[:, None]
        return self.at(stream, row_BN, torch.arange(n, device=self.row_B.device))

    def at(self, stream: str, row_P: Tensor, position_P: Tensor) -> Tensor:
        """int64 [P]: the values of `bits(stream, ...)[row_P, position_P]`, drawn only there."""
        start_B = mix64(self.row_B ^ _signed(int(stream_number(stream))))
        word_P = mix64(start_B[row_P] + (position_P // 2 + 1) * _GOLDEN)
        return torch.where(position_P % 2 == 1, _shift_right(word_P, 32), word_P & 0xFFFFFFFF)

    def uniform(self, stream: str, row_P: Tensor, position_P: Tensor) -> Tensor:
        """float64 [P]: the draws as numbers in (0, 1), each in the middle of its interval of 2**-32."""
        return (self.at(stream, row_P, position_P).double() + 0.5) / 2**32
