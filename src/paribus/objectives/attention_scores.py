"""What the attention of a trained encoder looks like on held-out rows, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from paribus.data.sequences import Arrays
from paribus.models.network import Network, as_batch, find_real
from paribus.objectives.evaluation import Evaluation, evaluating, on_device
from paribus.verdict.metrics.attention import MEASURED

if TYPE_CHECKING:
    from paribus.objectives.objective import Objective


class AttentionSums(NamedTuple):
    """Sums over queries and heads, of which `averages` makes the numbers of a layer.

    Attributes:
        mirrored, squared: over pairs of different tokens, of a score times that of the pair turned around, and of its
            square.
        diagonal: weight of the token itself.
        entropy: of the weights, in nats.
        largest: the largest weight.
        variance: of the scores of a query with all other tokens, without bias.
        queries: how many there are.
    """

    mirrored: Tensor
    squared: Tensor
    diagonal: Tensor
    entropy: Tensor
    largest: Tensor
    variance: Tensor
    queries: Tensor

    def add(self, other: AttentionSums) -> AttentionSums:
        return AttentionSums(*(one + more for one, more in zip(self, other, strict=True)))

    def averages(self) -> dict[str, float]:
        """{metric: value}. The symmetry of scores is 1 if they are those of their transpose, 0 if both have nothing in
        common, and -1 if one is minus the other.
        """
        symmetry = self.mirrored / self.squared if self.squared else torch.zeros(())
        means = (total / self.queries for total in (self.diagonal, self.entropy, self.largest, self.variance))
        return dict(zip(MEASURED, map(float, (symmetry, *means)), strict=True))


def sum_attention(score_BHLL: Tensor, share_BHLL: Tensor, length_B: Tensor) -> AttentionSums:
    """The sums of one layer over real tokens. Weights that do not sum to 1 are divided by their sum."""
    score, share = score_BHLL.double(), share_BHLL.double()
    real_BL = find_real(length_B, score.shape[3])
    real_B1L = real_BL[:, None]
    pair_B1LL = real_BL[:, None, :, None] & real_BL[:, None, None, :]
    itself_LL = torch.eye(score.shape[3], dtype=torch.bool, device=score.device)
    other = (pair_B1LL & ~itself_LL).expand_as(score)

    apart = score.where(other, 0.0)
    others_BHL = other.sum(-1).clamp(min=1)
    mean_BHL1 = (apart.sum(-1) / others_BHL)[..., None]
    variance_BHL = (apart - mean_BHL1).where(other, 0.0).square().sum(-1) / (others_BHL - 1).clamp(min=1)

    share = share.where(pair_B1LL, 0.0)
    share = share / share.sum(-1, keepdim=True).clamp(min=torch.finfo(share.dtype).tiny)
    diagonal_BHL = share.diagonal(dim1=2, dim2=3)
    entropy_BHL, largest_BHL = torch.special.entr(share).sum(-1), share.amax(-1)
    diagonal, entropy, largest, variance = (
        each.where(real_B1L, 0.0).sum() for each in (diagonal_BHL, entropy_BHL, largest_BHL, variance_BHL)
    )
    return AttentionSums(
        mirrored=(apart * apart.transpose(2, 3)).sum(),
        squared=apart.square().sum(),
        diagonal=diagonal,
        entropy=entropy,
        largest=largest,
        variance=variance,
        queries=real_BL.sum() * score.shape[1],
    )


class AttentionScores(Evaluation):
    """The symmetry and variance of scores, and the mass on the diagonal, entropy and largest of weights.

    Args:
        network: of which it is asked; UserError if it does not give its attention.
        arrays: packed rows of held-out text.
    """

    def __init__(self, network: Network, arrays: Sequence[Arrays]) -> None:
        self.arrays, self.depth = arrays, network.depth
        with network.watching_attention(lambda score, share: None):
            pass

    @property
    def metrics(self) -> Sequence[str]:
        layers = range(1, self.depth + 1)
        return [*MEASURED, *(f"{name}_layer{layer}" for layer in layers for name in MEASURED)]

    def measure(self, network: Network, objective: Objective) -> dict[str, float]:
        """{metric: mean over layers} and {metric_layerN: of a layer, counted from 1}."""
        totals: list[AttentionSums] = []
        with evaluating(network):
            for batch in (on_device(as_batch(arrays), network) for arrays in self.arrays):
                layers: list[AttentionSums] = []

                def keep(score_BHLL: Tensor, share_BHLL: Tensor) -> None:
                    layers.append(sum_attention(score_BHLL, share_BHLL, batch["length_B"]))  # noqa: B023 (called here)

                with network.watching_attention(keep):
                    network(batch)
                totals = [total.add(layer) for total, layer in zip(totals, layers, strict=True)] if totals else layers
        each = [total.averages() for total in totals]
        means = {name: sum(layer[name] for layer in each) / len(each) for name in MEASURED}
        return means | {f"{name}_layer{n}": value for n, layer in enumerate(each, 1) for name, value in layer.items()}
