"""Probes: what a linear classifier can read from a frozen network.   ALBERT (arXiv 1909.11942), table 5

The first columns of that table test every model on next segments and on their order, also those that were trained
for neither. To avoid a head that only some arms have, each network gets its own classifier on the same examples: a
logistic regression, whose optimum does not depend on a seed or a learning rate.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from paribus.corruption.examples import Examples
from paribus.models.network import Batch, Network
from paribus.training.evaluate import evaluating, majority, outputs, packed

PENALTY: Final = 0.1  # times the sum of squared weights, beside the mean cross-entropy
ITERATIONS: Final = 100  # of L-BFGS, at most


class TrainedProbe:
    """A logistic regression on what summarizes a row ([CLS]) in a frozen network, which reads pairs without masks.

    `train` and `test` hold the same kind of pairs; at most `most_train` and `most` of them are read.
    """

    def __init__(self, name: str, train: Examples, test: Examples, most_train: int, most: int) -> None:
        self.metric = f"{name}_probe_accuracy"
        self._train, self._test = (train, most_train), (test, most)

    def measure(self, network: Network, head: object = None) -> dict[str, float]:
        """{"nsp_probe_accuracy" or "sop_probe_accuracy": share of pairs whose label is found}.

        The network is not changed, and its own `head` is not asked.
        """
        state_ND, label_N = _read(network, packed(*self._train))
        test_ND, target_N = _read(network, packed(*self._test))
        mean_D, spread_D = state_ND.mean(0), state_ND.std(0).clamp_min(1e-6)
        weight_CD = fit_logistic((state_ND - mean_D) / spread_D, label_N)
        answer_N = _logits((test_ND - mean_D) / spread_D, weight_CD).argmax(-1)
        return {self.metric: float((answer_N == target_N).double().mean())}

    def majority(self) -> dict[str, float]:
        """The same metric for the more frequent label."""
        return {self.metric: majority(np.concatenate([arrays["label_N"] for arrays in packed(*self._test)]))}


def fit_logistic(state_ND: Tensor, label_N: Tensor) -> Tensor:
    """[C, D + 1], the last column the biases: the least penalized cross-entropy over these examples."""
    weight_CD = torch.zeros(int(label_N.max()) + 1, state_ND.shape[1] + 1, dtype=state_ND.dtype, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weight_CD], max_iter=ITERATIONS, tolerance_grad=1e-9, tolerance_change=1e-12, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = cross_entropy(_logits(state_ND, weight_CD), label_N) + PENALTY * weight_CD[:, :-1].square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    return weight_CD.detach()


def _logits(state_ND: Tensor, weight_CD: Tensor) -> Tensor:
    return state_ND @ weight_CD[:, :-1].T + weight_CD[:, -1]


class _FirstTokens:
    """Reads the first state of each row."""

    def reads(self, batch: Batch) -> list[Tensor]:
        return []


def _read(network: Network, arrays: Iterable[dict[str, Any]]) -> tuple[Tensor, Tensor]:
    """([CLS] states [N, D] in double precision, labels [N]) of packed pairs, on the CPU."""
    with evaluating(network):
        read = [
            (states.row_BD.double().cpu(), batch["label_N"].cpu())
            for batch, states in outputs(network, _FirstTokens(), arrays)
        ]
        states, labels = (torch.cat(column) for column in zip(*read, strict=True))
    return states.clone(), labels.clone()
