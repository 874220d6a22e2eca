"""The evaluation of an objective that writes into the text before its network reads it, such as ELECTRA's generator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from paribus.models.heads.head import name_places
from paribus.models.heads.replaced import ORIGINAL, find_real
from paribus.training.evaluate import Asked, HeldOutEvaluation, Model, evaluating, on_device
from paribus.training.steps import as_batch

if TYPE_CHECKING:
    from paribus.corruption.examples import Examples
    from paribus.data.text import Arrays
    from paribus.models.network import Batch
    from paribus.objectives.objective import Objective


class WrittenEvaluation(HeldOutEvaluation):
    """The loss of the network's own head on what the objective writes into held-out text.

    Args:
        objective: one whose network reads another batch than it is given.
    """

    def __init__(self, examples: Examples, most: int, objective: Objective) -> None:
        super().__init__(examples, most, objective.own_head_name)
        assert self.name is not None
        self.objective, self.head = objective, objective.named_heads[self.name]

    @property
    def asked(self) -> int:
        return sum(int(arrays["counts"][self.head.denominator]) for arrays in self.arrays)

    def measure(self, network: Model, head: Asked | None) -> dict[str, float]:
        """{"replaced_loss": mean cross-entropy in nats}, with the own head's name; `head` is not read."""
        with evaluating(network, self.objective):
            read = self._read(network, self.arrays)
            losses = [float(self.head(network(name_places([self.head], batch)), batch)) for batch in read]
        return {f"{self.name}_loss": sum(losses) / self.asked}

    def write(self, network: Model, arrays: Iterable[Arrays], specials: Iterable[int]) -> Iterator[Arrays]:
        """The arrays as the network reads them. Their predicted positions are the ordinary tokens that it predicts;
        special tokens are never replaced.
        """
        arrays = list(arrays)
        with evaluating(network, self.objective):
            for given, batch in zip(arrays, self._read(network, arrays), strict=True):
                slot_N = (batch["slot_P"] if self.head.reads(batch) else find_real(batch)).cpu().numpy()
                read_BL, original_BL = (batch[name].cpu().numpy() for name in ("ids_BL", ORIGINAL))
                slot_P = slot_N[~np.isin(original_BL.reshape(-1)[slot_N], list(specials))]
                yield {**given, "ids_BL": read_BL, "slot_P": slot_P, "target_P": original_BL.reshape(-1)[slot_P]}

    def _read(self, network: Model, arrays: Iterable[Arrays]) -> Iterator[Batch]:
        for given in arrays:
            yield self.objective.write(network, on_device(as_batch(given), network))
