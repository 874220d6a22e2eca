"""Initial weights as a pure function of (seed, parameter name), and the HF checkpoint format."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import torch
from torch import nn


def named_generator(seed: int, name: str) -> torch.Generator:
    """A CPU generator that depends on nothing but its arguments."""
    key = hashlib.blake2b(f"{seed}:{name}".encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(key, "little") >> 1)


def initialize(module: nn.Module, seed: int, std: float | Callable[[str], float]) -> None:
    """BERT's initial weights: N(0, std) for matrices and embeddings, 1 for LayerNorm scales, 0 for biases and padding.

    `std` may depend on the parameter's name.
    Arms whose parameters agree in name and shape start from the same bits, whatever else differs.
    """
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if parameter.ndim > 1:
                own = std(name) if callable(std) else std
                parameter.normal_(0.0, own, generator=named_generator(seed, name))
            else:
                parameter.fill_(1.0 if name.endswith("weight") else 0.0)
        for part in module.modules():
            if isinstance(part, nn.Embedding) and part.padding_idx is not None:
                part.weight[part.padding_idx].zero_()
