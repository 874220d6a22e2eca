"""What changes of positions have in common: sinusoids, distances between places, and scores of distances."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn

WAVELENGTHS: Final = 10000.0  # from 2 pi to 10000 x 2 pi (Vaswani et al., arXiv 1706.03762, section 3.5)


class NoTable(nn.Module):
    """In place of the learned table of positions: adds nothing to the embeddings."""

    def forward(self, position_ids: Tensor) -> Tensor:
        return torch.zeros((), device=position_ids.device)


def make_sinusoids(place: Tensor, width: int, variant: str) -> Tensor:
    """float32 [..., width]: the sinusoids of places or distances, for an even width.

    Variant "paper" alternates sine and cosine, with frequencies 10000^(-2i / width) (Vaswani et al., section 3.5).
    "tensor2tensor" puts all sines first, with frequencies 10000^(-i / (width / 2 - 1)), as that library's code has it.
    "transformer_xl" puts all sines first, with the paper's frequencies (arXiv 1901.02860, the authors' code).
    """
    half = width // 2
    rates = half if variant != "tensor2tensor" else max(1, half - 1)
    exponent_C = torch.arange(half, dtype=torch.float64, device=place.device) / rates
    angle = place[..., None].double() * WAVELENGTHS**-exponent_C
    waves = [angle.sin(), angle.cos()]
    return (torch.stack(waves, -1).flatten(-2) if variant == "paper" else torch.cat(waves, -1)).float()


def find_distances(place_Q: Tensor, place_K: Tensor) -> Tensor:
    """[B or 1, Q, K]: how far each key is to the right of each query; below 0 to the left."""
    return place_K[:, None, :] - place_Q[:, :, None]


def look_up(score_BHQR: Tensor, index_BQK: Tensor) -> Tensor:
    """[B, H, Q, K]: of each query's scores, one per distance, that of its distance to each key."""
    index_BHQK = index_BQK[:, None].expand(*score_BHQR.shape[:2], -1, -1)
    return score_BHQR.gather(3, index_BHQK)
