"""How objectives on words in windows are evaluated, and what GloVe leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import torch

from paribus.corruption.examples import Examples, evaluation_batches
from paribus.models.heads.head import name_places
from paribus.models.heads.word_vectors import GloVe
from paribus.models.network import Network, as_batch
from paribus.objectives.evaluation import Evaluation, evaluating, on_device
from paribus.objectives.objective import Objective
from paribus.objectives.target_set import TargetSet

if TYPE_CHECKING:
    from paribus.models.heads.head import Head


class HeadLoss(Evaluation):
    """The mean loss of a head on held-out text.

    Args:
        most: examples that are read at most.
        name: of the head.
        what: the name of the set of predictions.
    """

    during_training: ClassVar[bool] = True

    def __init__(self, examples: Examples, most: int, name: str, what: str) -> None:
        self.name, self.what = name, what
        self.arrays = list(evaluation_batches(examples, most))

    @property
    def metrics(self) -> Sequence[str]:
        return (f"{self.name}_loss",)

    @property
    def asked(self) -> int:
        """Predictions."""
        return sum(int(arrays["counts"]["predicted"]) for arrays in self.arrays)

    def measure(self, network: Network, objective: Objective) -> dict[str, float]:
        """{"skip_gram_loss": mean over predictions}, with the head's name; empty if the objective has no such head."""
        head: Head | None = objective.named_heads.get(self.name)
        if head is None:
            return {}
        total = 0.0
        with evaluating(network, head):
            for arrays in self.arrays:
                batch = on_device(as_batch(arrays), network)
                total += float(head(network(name_places([head], batch)), batch))
        return {f"{self.name}_loss": total / max(1, self.asked)}

    def target_sets(self) -> Mapping[str, TargetSet]:
        return {f"{self.name}_loss": TargetSet(self.what, self.asked)}


class GloveObjective(Objective):
    """GloVe's vectors are the sums of its two tables (Pennington et al. 2014, section 4.2)."""

    def finish(self, network: Network) -> None:
        for head in self.named_heads.values():
            if isinstance(head, GloVe):
                with torch.no_grad():
                    network.table_VD.add_(head.context.weight)
