"""An objective calls the model and sums its heads' losses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from paribus.models.encoder import Batch, Outputs


class Objective(nn.Module):
    """Reads the batch once and asks every head; subclasses may call the model twice or own further networks.

    `heads[name].per` names the count in `batch["counts"]` that the head's sum is divided by, over the whole step;
    `plus`, where a head has it, is added to that count.
    """

    def __init__(self, heads: Mapping[str, nn.Module], weights: Mapping[str, float] | None = None) -> None:
        super().__init__()
        self.heads = nn.ModuleDict(dict(heads))
        self.weights = dict(weights or dict.fromkeys(heads, 1.0))

    @property
    def main(self) -> str:
        """The head that the common evaluation asks and the checkpoint keeps: the first."""
        return next(iter(self.heads))

    def forward(self, model: nn.Module, batch: Batch, state: Any = None) -> tuple[dict[str, Tensor], Any]:
        """({head: sum of losses}, state for the next step)."""
        outputs: Outputs = model(batch, state=state)
        return {name: head(outputs, batch) for name, head in self.heads.items()}, outputs.state

    def denominators(self) -> dict[str, str]:
        """{head: name of its count}."""
        return {name: str(head.per) for name, head in self.heads.items()}

    def divisors(self, counts: Mapping[str, int]) -> dict[str, int]:
        """{head: what its sum over a step of these counts is divided by}, at least 1."""
        return {name: max(1, counts[str(head.per)] + getattr(head, "plus", 0)) for name, head in self.heads.items()}
