"""Rotary positions: queries and keys are rotated in the plane of each pair of features.   arXiv 2104.09864"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class NoPositions(nn.Module):
    """In place of the learned table of positions: adds nothing to the embeddings."""

    def forward(self, position_ids: Tensor) -> Tensor:
        return torch.zeros((), device=position_ids.device)


class Rotation(NamedTuple):
    """Rotates the pair (2i, 2i + 1) of the features of a head by position x base^(-2i / width): RoFormer's layout."""

    width: int
    base: float

    def __call__(self, query_BHQE: Tensor, key_BHSE: Tensor, place_BQ: Tensor | None) -> tuple[Tensor, Tensor]:
        """The rotated queries and keys. `place_BQ`: where the queries are; None if there is one for each key."""
        turn_SC = find_turns(key_BHSE.shape[2], self.width, self.base, key_BHSE.device)
        turn = turn_SC if place_BQ is None else turn_SC[place_BQ][:, None]
        if torch.compiler.is_compiling():  # it has no kernels for complex numbers, but fuses real ones
            return _multiply_parts(query_BHQE, turn), _multiply_parts(key_BHSE, turn_SC)
        return _Turned.apply(query_BHQE, turn), _Turned.apply(key_BHSE, turn_SC)  # type: ignore[no-untyped-call]


@lru_cache(maxsize=32)
def find_turns(length: int, width: int, base: float, device: torch.device) -> Tensor:
    """complex64 [length, width / 2]: the rotation of each pair at each position, computed in float64."""
    with torch.inference_mode(False):  # what an evaluation caches must serve training too
        exponent_C = torch.arange(0, width, 2, dtype=torch.float64) / width
        angle_LC = torch.arange(length, dtype=torch.float64)[:, None] * base**-exponent_C
        return torch.polar(torch.ones_like(angle_LC), angle_LC).to(torch.complex64).to(device)


class _Turned(torch.autograd.Function):
    """A rotation as one product of complex numbers; its gradient is the rotation back."""

    @staticmethod
    def forward(ctx: Any, state_BHLE: Tensor, turn: Tensor) -> Tensor:
        ctx.turn = turn
        return _multiply(state_BHLE, turn)

    @staticmethod
    def backward(ctx: Any, gradient_BHLE: Tensor) -> tuple[Tensor, None]:
        return _multiply(gradient_BHLE, ctx.turn.conj().resolve_conj()), None


def _multiply(state_BHLE: Tensor, turn: Tensor) -> Tensor:
    pair_BHLC = torch.view_as_complex(_pair(state_BHLE))
    return torch.view_as_real(pair_BHLC * turn).flatten(-2).to(state_BHLE.dtype)


def _multiply_parts(state_BHLE: Tensor, turn: Tensor) -> Tensor:
    """As `_multiply`, by real numbers."""
    (even, odd), (cos, sin) = _pair(state_BHLE).unbind(-1), torch.view_as_real(turn).unbind(-1)
    rotated = torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1)
    return rotated.flatten(-2).to(state_BHLE.dtype)


def _pair(state_BHLE: Tensor) -> Tensor:
    """float32 [B, H, L, E / 2, 2]"""
    return state_BHLE.float().reshape(*state_BHLE.shape[:-1], -1, 2)
