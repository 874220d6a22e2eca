"""Which parameters decay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import nn


def parameter_groups(named: Iterable[tuple[str, nn.Parameter]], weight_decay: float) -> list[dict[str, Any]]:
    """Two groups: matrices and embeddings decay; biases and LayerNorms (vectors) do not (BERT, `optimization.py`)."""
    trained = [parameter for _, parameter in named if parameter.requires_grad]
    groups = [
        {"params": [p for p in trained if p.ndim > 1], "weight_decay": weight_decay},
        {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]
