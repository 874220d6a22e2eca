"""Ensembles: models that answer together. T5 (arXiv 1910.10683), section 3.6"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from torch import Tensor, nn

from paribus.models.heads.head import Head, name_places
from paribus.models.network import Batch, Network, Outputs, State

Pair = tuple[Network, Head]


class Ensemble(nn.Module):
    """Models of one shape with a head each, and the head on all of them: the mean of their logits serves as the
    logits of one model. Call it as `ensemble.logits(ensemble(batch), batch)`.
    """

    def __init__(self, pairs: Sequence[Pair]) -> None:
        super().__init__()
        self.models = nn.ModuleList([model for model, _ in pairs])
        self.heads = nn.ModuleList([head for _, head in pairs])

    @property
    def pairs(self) -> list[Pair]:
        """Each model with its head."""
        return [(cast(Network, model), cast(Head, head)) for model, head in zip(self.models, self.heads, strict=True)]

    def forward(self, batch: Batch, state: Sequence[State] | None = None) -> list[Outputs]:
        """The states that each model gives its head, computed only at the positions that the head reads; `state` is
        what each model carries from the batch before.
        """
        carried = [None] * len(self.models) if state is None else state
        return [
            model(name_places([head], batch), state=each)
            for (model, head), each in zip(self.pairs, carried, strict=True)
        ]

    def reads(self, batch: Batch) -> None:
        """None, since each model knows which positions its own head reads."""

    def logits(self, outputs: Sequence[Outputs], batch: Batch) -> Tensor:
        """In the shape of one head's, in full precision."""
        return mean([head.logits(states, batch) for (_, head), states in zip(self.pairs, outputs, strict=True)])

    def answer(self, outputs: Sequence[Outputs], batch: Batch) -> Tensor:
        """[B, L]: the best tag of each token, for heads that score each token by itself."""
        return self.logits(outputs, batch).argmax(-1)


def pairs_of(model: Network | Ensemble, head: Head | Ensemble) -> list[Pair]:
    """The models of an ensemble with their heads, or the one model with its head."""
    return model.pairs if isinstance(model, Ensemble) else [(model, cast(Head, head))]


def mean(logits: Sequence[Tensor]) -> Tensor:
    """The mean of tensors of one shape; of one tensor its own bits. The lowest finite number stays finite."""
    parts = [each.float() / len(logits) for each in logits]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part
    return whole
