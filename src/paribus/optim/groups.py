"""Parameter groups: which parameters decay, and their share of the learning rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch import nn

Rates = Callable[[str], float]  # name of a parameter -> share of the optimizer's rate


def parameter_groups(
    named: Iterable[tuple[str, nn.Parameter]], weight_decay: float, rates: Rates | None = None, vectors: bool = False
) -> list[dict[str, Any]]:
    """Matrices and embeddings decay; biases and LayerNorms (vectors) do not (BERT, `optimization.py`), unless
    `vectors` says so.

    Each share of the rate makes two such groups, which hold it as "rate", the highest share first.
    """
    trained = [(name, parameter) for name, parameter in named if parameter.requires_grad]
    if rates is None:
        return _by_decay([parameter for _, parameter in trained], weight_decay, vectors)
    found: dict[float, list[nn.Parameter]] = {}
    for name, parameter in trained:
        found.setdefault(rates(name), []).append(parameter)
    return [
        {**group, "rate": share}
        for share in sorted(found, reverse=True)
        for group in _by_decay(found[share], weight_decay, vectors)
    ]


def _by_decay(parameters: list[nn.Parameter], weight_decay: float, vectors: bool) -> list[dict[str, Any]]:
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": weight_decay if vectors else 0.0},
    ]
    return [group for group in groups if group["params"]]
