"""Probes: small models that are trained on the frozen states of a network, layer by layer.

A probe measures what can be read off a layer. How much of that it could learn by heart is measured on a control task
(Hewitt and Liang 2019, arXiv 1909.03368); the accuracy beyond that is its selectivity.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from paribus.core.noise import Noise
from paribus.core.settings import within
from paribus.models.heads.layer_numbers import ALL, number_layers

if TYPE_CHECKING:
    from torch import Tensor

    from paribus.data.sequences import Array

PENALTY: Final = 0.1  # times the sum of squared weights, beside the mean cross-entropy
ITERATIONS: Final = 100  # of L-BFGS, at most
SMALLEST: Final = 1e-6  # of a standard deviation that states are divided by


@dataclass(frozen=True)
class Probe(ABC):
    """Reads the states after the layers `layers` (see `number_layers`), each by itself.

    `examples`: the most training words or texts that are read, evenly spaced; None: all. `control`: a second probe of
    each layer learns random labels, as `draw_control` makes them.
    """

    layers: int | str | Sequence[int] = field(default=ALL, metadata=within(-1000, 1000))
    examples: int | None = field(default=50_000, metadata=within(2, 10**12))
    control: bool = True

    def choose(self, depth: int) -> list[int]:
        """The layers, as numbers from 0 to `depth`, sorted. Raises UserError for one that the network lacks or that is
        named twice.
        """
        return sorted(number_layers(self.layers, depth, "finetune.probe.layers"))

    def sample(self, size: int) -> Array:
        """int64: which of so many training items are read."""
        if self.examples is None or size <= self.examples:
            return np.arange(size)
        return np.linspace(0, size - 1, self.examples).round().astype(np.int64)

    @abstractmethod
    def fit(self, state_ND: Tensor, label_N: Tensor, classes: int, seed: int) -> Callable[[Tensor], Tensor]:
        """Train on these states, which are standardized.

        Args:
            label_N: class numbers, or values if there are no `classes`.
            seed: of all draws.

        Returns:
            A function from states [N, D] to scores [N, classes], or to values [N, 1].
        """


@dataclass(frozen=True)
class Linear(Probe):
    """Multinomial logistic regression, or ridge regression of values, with `penalty` times the sum of the squared
    weights. Nothing is drawn.
    """

    penalty: float = field(default=0.001, metadata=within(0, 10**6))
    semantics: ClassVar[int] = 1

    def fit(self, state_ND: Tensor, label_N: Tensor, classes: int, seed: int) -> Callable[[Tensor], Tensor]:
        import torch

        if classes:
            weight_CD = fit_logistic(state_ND, label_N, self.penalty)
            return lambda state_ND: score_linear(state_ND, weight_CD)
        state_ND, label_N = state_ND.double(), label_N.double()
        bias, width = label_N.mean(), state_ND.shape[1]
        squares_DD = state_ND.T @ state_ND / len(state_ND) + self.penalty * torch.eye(width).to(state_ND)
        weight_D = torch.linalg.lstsq(squares_DD, (state_ND.T @ (label_N - bias) / len(state_ND))[:, None]).solution
        return lambda state_ND: state_ND.double() @ weight_D + bias


@dataclass(frozen=True)
class MLP(Probe):
    """One hidden layer of `width` with ReLU, trained by Adam at a constant rate (Liu et al. 2019, arXiv 1903.08855,
    section 4, who stop early; here it trains for `epochs`). Values are standardized for the squared error.
    """

    width: int = field(default=1024, metadata=within(1, 10**5))
    epochs: int = field(default=5, metadata=within(1, 10**5))
    batch_size: int = field(default=256, metadata=within(1, 10**6))
    lr: float = field(default=0.001, metadata=within(0, 10))
    semantics: ClassVar[int] = 1

    def fit(self, state_ND: Tensor, label_N: Tensor, classes: int, seed: int) -> Callable[[Tensor], Tensor]:
        import torch
        from torch import nn
        from torch.nn.functional import cross_entropy, mse_loss

        random = torch.Generator().manual_seed(seed % 2**63)
        shift, scale = (0.0, 1.0) if classes else (label_N.mean(), label_N.std().clamp_min(SMALLEST))
        target_N = label_N if classes else ((label_N - shift) / scale).to(state_ND.dtype)
        layers = nn.Linear(state_ND.shape[1], self.width), nn.Linear(self.width, classes or 1)
        with torch.no_grad():  # PyTorch's initial weights, from our own generator
            for layer in layers:
                bound = layer.in_features**-0.5
                for parameter in layer.parameters():
                    parameter.uniform_(-bound, bound, generator=random)
        model = nn.Sequential(layers[0], nn.ReLU(), layers[1]).to(state_ND)
        optimizer = torch.optim.Adam(model.parameters(), lr=self.lr)
        for _ in range(self.epochs):
            row_N = torch.randperm(len(state_ND), generator=random).to(state_ND.device)
            for row_B in torch.split(row_N, self.batch_size):
                output_BC = model(state_ND[row_B])
                wanted_B = target_N[row_B]
                loss = cross_entropy(output_BC, wanted_B) if classes else mse_loss(output_BC[:, 0], wanted_B)
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()

        def read(state_ND: Tensor) -> Tensor:
            with torch.no_grad():
                output_NC: Tensor = model(state_ND) * scale + shift
            return output_NC

        return read


def fit_logistic(state_ND: Tensor, label_N: Tensor, penalty: float = PENALTY) -> Tensor:
    """[C, D + 1], the last column the biases: the least penalized cross-entropy over these examples."""
    import torch
    from torch.nn.functional import cross_entropy

    weight_CD = torch.zeros(int(label_N.max()) + 1, state_ND.shape[1] + 1).to(state_ND).requires_grad_()
    change = 1e-12 if state_ND.dtype == torch.double else 1e-7  # single precision knows no smaller one
    optimizer = torch.optim.LBFGS(
        [weight_CD], max_iter=ITERATIONS, tolerance_grad=1e-9, tolerance_change=change, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = cross_entropy(score_linear(state_ND, weight_CD), label_N) + penalty * weight_CD[:, :-1].square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    return weight_CD.detach()


def score_linear(state_ND: Tensor, weight_CD: Tensor) -> Tensor:
    """[N, C]: the scores of a linear model as `fit_logistic` gives it."""
    return state_ND @ weight_CD[:, :-1].T + weight_CD[:, -1]


def draw_control(kinds: Mapping[str, Sequence[str]], label_I: Array, seed: int) -> dict[str, Array]:
    """The labels of a control task: each kind has one random label in all sets (Hewitt and Liang 2019, section 2).

    Kinds of tags are word types: a probe knows the label of a word that it has seen only by heart, so that its accuracy
    on such labels shows how much of the real one may be memory. Kinds of rows are texts, which rarely repeat: there the
    control shows the accuracy that label frequencies and repeated texts give.

    Args:
        kinds: {set: the kind of each item}.
        label_I: int64, the real labels of the training items; over all kinds the random labels are as frequent.

    Returns:
        {set: int64 labels of its items}.
    """
    names = sorted(set(chain(*kinds.values())))
    key_K = [int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()) for name in names]
    drawn_K = Noise.of(seed, (), np.array(key_K, np.uint64)).bits("control", 1)[:, 0]
    rank_K = drawn_K.argsort(kind="stable").argsort(kind="stable")
    label_K = np.sort(label_I)[((rank_K + 0.5) / len(names) * len(label_I)).astype(np.int64)]
    label_of = dict(zip(names, label_K.tolist(), strict=True))
    return {split: np.array([label_of[kind] for kind in each], np.int64) for split, each in kinds.items()}
