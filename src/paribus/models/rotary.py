"""Rotary positions: queries and keys are rotated in the plane of each pair of features.   arXiv 2104.09864"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import torch
from torch import Tensor

from paribus.models.attention_part import AttentionPart

PART: Final = 2**18  # numbers that are rotated at once


class RotaryPart(AttentionPart):
    """Rotates the pair (2i, 2i + 1) of a head's first `width` features by position x base^(-2i / width)."""

    turn_order = 2

    def __init__(self, width: int, base: float) -> None:
        super().__init__()
        self.width, self.base = width, base

    def turn(self, query: Tensor, key: Tensor, place_Q: Tensor, place_K: Tensor) -> tuple[Tensor, Tensor]:
        return self.turn_scaled(query, key, place_Q, place_K, 1.0)

    def turn_scaled(
        self, query: Tensor, key: Tensor, place_Q: Tensor, place_K: Tensor, scale: float
    ) -> tuple[Tensor, Tensor]:
        """The scale is a factor of the rotation, which saves a product."""
        if self.width < query.shape[-1]:
            return self._turn_some(query, key, place_Q, place_K, scale)
        places, device = key.shape[2], key.device
        turn_KC, scaled_KC = (find_turns(places, self.width, self.base, size, device) for size in (1.0, scale))
        turn = scaled_KC if place_Q is place_K else scaled_KC[place_Q][:, None]
        if torch.compiler.is_compiling():  # it has no kernels for complex numbers, but fuses real ones
            return _multiply_parts(query, turn), _multiply_parts(key, turn_KC)
        return _Turned.apply(query, turn), _Turned.apply(key, turn_KC)  # type: ignore[no-untyped-call]

    def _turn_some(
        self, query: Tensor, key: Tensor, place_Q: Tensor, place_K: Tensor, scale: float
    ) -> tuple[Tensor, Tensor]:
        """The features behind the rotated ones stay as they are."""
        width = self.width
        turned = self.turn_scaled(query[..., :width], key[..., :width], place_Q, place_K, scale)
        rest = query[..., width:] * scale, key[..., width:]
        return torch.cat([turned[0], rest[0]], -1), torch.cat([turned[1], rest[1]], -1)


@lru_cache(maxsize=64)
def find_turns(places: int, width: int, base: float, scale: float, device: torch.device) -> Tensor:
    """complex64 [places, width / 2]: the rotation of each pair at each position, times `scale`, computed in float64."""
    with torch.inference_mode(False):  # what an evaluation caches must serve training too
        exponent_C = torch.arange(0, width, 2, dtype=torch.float64) / width
        angle_LC = torch.arange(places, dtype=torch.float64)[:, None] * base**-exponent_C
        return torch.polar(torch.full_like(angle_LC, scale), angle_LC).to(torch.complex64).to(device)


class _Turned(torch.autograd.Function):
    """A rotation as one product of complex numbers; its gradient is the rotation back.

    The product is written as its reader wants it: head by head forward, for the matrix products of the scores, and
    token by token backward, for those of the projections. That saves them a copy.
    """

    @staticmethod
    def forward(ctx: Any, state_BHLE: Tensor, turn: Tensor) -> Tensor:
        ctx.turn = turn
        return _multiply(state_BHLE, turn, state_BHLE.new_empty(state_BHLE.shape))

    @staticmethod
    def backward(ctx: Any, gradient_BHLE: Tensor) -> tuple[Tensor, None]:
        batch, heads, length, width = gradient_BHLE.shape
        into_BHLE = gradient_BHLE.new_empty(batch, length, heads, width).transpose(1, 2)
        return _multiply(gradient_BHLE, ctx.turn.conj().resolve_conj(), into_BHLE), None


def _multiply(state_BHLE: Tensor, turn: Tensor, into_BHLE: Tensor) -> Tensor:
    """Write the product, computed in float32; of another type in parts that stay in the cache."""
    if state_BHLE.stride(-1) != 1:  # as other parts of attention may leave it; pairs have to be neighbors in memory
        state_BHLE = state_BHLE.contiguous()
    if state_BHLE.dtype == torch.float32:
        torch.mul(_pair(state_BHLE), turn, out=_pair(into_BHLE))
        return into_BHLE
    rows = max(1, PART // state_BHLE[0].numel())
    for at in range(0, len(into_BHLE), rows):
        part = slice(at, at + rows)
        pair_BHLC = _pair(state_BHLE[part].float()).mul_(turn[part] if turn.ndim > 2 and len(turn) > 1 else turn)
        into_BHLE[part] = torch.view_as_real(pair_BHLC).flatten(-2)
    return into_BHLE


def _multiply_parts(state_BHLE: Tensor, turn: Tensor) -> Tensor:
    """The product by real numbers."""
    pair = torch.view_as_real(_pair(state_BHLE.float()))
    (even, odd), (cos, sin) = pair.unbind(-1), torch.view_as_real(turn).unbind(-1)
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2).to(state_BHLE.dtype)


def _pair(state_BHLE: Tensor) -> Tensor:
    """The same float32 numbers as complex64 [B, H, L, E / 2]."""
    return torch.view_as_complex(state_BHLE.view(*state_BHLE.shape[:-1], -1, 2))
