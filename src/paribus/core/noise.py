"""Noise as a pure function: a vectorized 64-bit counter hash.

A draw depends only on (seed, keys, example, stream name, position): not on the batch, the worker, the device or earlier
draws. The generator is SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators") with a
separate start for each row and stream; one 64-bit word serves two neighboring positions. `objectives.generated` gives
the same bits for tensors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

SEMANTICS: Final = 1  # raised when any bit changes

GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
SECOND: Final = np.uint64(0x94D049BB133111EB)
_WORD: Final = (1 << 64) - 1


def mix64(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finalizer, a bijection of 64-bit words; works in place and returns its argument."""
    shifted = value >> np.uint64(30)
    value ^= shifted
    value *= FIRST
    np.right_shift(value, np.uint64(27), out=shifted)
    value ^= shifted
    value *= SECOND
    np.right_shift(value, np.uint64(31), out=shifted)
    value ^= shifted
    return value


@cache
def stream_number(name: str) -> np.uint64:
    """The 64-bit number of a named stream, the same on every machine."""
    return np.uint64(int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little"))


def _absorb(state_B: NDArray[np.uint64], value: np.uint64 | NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A sponge step: mixes `value` (number or uint64 [B]) into the state; the order of steps counts."""
    return mix64(state_B * GOLDEN + mix64(np.atleast_1d(value) + GOLDEN))


@dataclass(frozen=True)
class Noise:
    """Random bits for B rows; equal row keys give equal bits."""

    row_B: NDArray[np.uint64]

    @classmethod
    def of(cls, seed: int, keys: Iterable[int], example_B: ArrayLike) -> Noise:
        """Row keys from the run's seed, the keys of the pass (input's, masking's) and the examples' ids."""
        state = np.zeros(1, np.uint64)
        for number in (seed, *keys):
            state = _absorb(state, np.uint64(number & _WORD))
        return cls(_absorb(state, np.asarray(example_B).astype(np.uint64)))

    def bits(self, stream: str, n: int) -> NDArray[np.uint32]:
        """uint32 [B, n]: the stream's draws at positions 0..n-1; a larger n only adds columns."""
        counter = np.arange(1, (n + 1) // 2 + 1, dtype=np.uint64) * GOLDEN
        words = mix64(self._start(stream)[:, None] + counter)
        return words.astype("<u8", copy=False).view("<u4")[:, :n]

    def at(self, stream: str, row_P: ArrayLike, position_P: ArrayLike) -> NDArray[np.uint32]:
        """uint32 [P]: the values of `bits(stream, ...)[row_P, position_P]`, drawn only there."""
        position = np.asarray(position_P).astype(np.uint64)
        words = mix64(self._start(stream)[np.asarray(row_P)] + (position // np.uint64(2) + np.uint64(1)) * GOLDEN)
        return (words >> (position % np.uint64(2) * np.uint64(32))).astype(np.uint32)

    def _start(self, stream: str) -> NDArray[np.uint64]:
        return mix64(self.row_B ^ stream_number(stream))


def below(share: float) -> np.uint64:
    """The bound t for which a uint32 draw is < t with probability `share`."""
    return np.uint64(round(share * 2**32))


def integers(bits_P: NDArray[np.uint32], n: int | NDArray[np.int64]) -> NDArray[np.int64]:
    """Draws as uniform integers in [0, n), with one n or one per draw: multiply and shift.

    Each probability is off by at most n / 2**32 of itself.
    """
    return (bits_P.astype(np.uint64) * np.asarray(n).astype(np.uint64) >> np.uint64(32)).astype(np.int64)
