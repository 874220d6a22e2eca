"""The module that is an adapter (arXiv 1902.00751, section 2.1)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from paribus.models.network import named_generator


class Adapted(nn.Module):
    """A sublayer's dropout followed by the adapter; replaces the dropout."""

    def __init__(self, dropout: nn.Module, width: int, size: int, activation: str) -> None:
        super().__init__()
        self.dropout = dropout
        self.down, self.up = nn.Linear(width, size), nn.Linear(size, width)
        self.activation = nn.ReLU() if activation == "relu" else nn.GELU()

    def forward(self, hidden_BLD: Tensor) -> Tensor:
        """[B, L, D] to the same."""
        hidden_BLD = self.dropout(hidden_BLD)
        adapted_BLD: Tensor = hidden_BLD + self.up(self.activation(self.down(hidden_BLD)))
        return adapted_BLD


def initialize_adapters(encoder: nn.Module, seed: int, std: float) -> None:
    """Initial weights of all adapters: a normal cut at two deviations, a pure function of seed and name; biases 0."""
    for module_name, module in encoder.named_modules():
        if isinstance(module, Adapted):
            for name, linear in (("down", module.down), ("up", module.up)):
                generator = named_generator(seed, f"{module_name}.{name}")
                nn.init.trunc_normal_(linear.weight, 0.0, std, -2 * std, 2 * std, generator=generator)
                with torch.no_grad():
                    linear.bias.zero_()
