"""The training loss of a fine-tuning as a function of its weights: along a line, on a plane, in random directions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from paribus.data.tokens.prepare import Data
from paribus.finetuning import saved
from paribus.models import checkpoint
from paribus.models.network import Batch, Network, named_generator
from paribus.objectives.evaluation import evaluating
from paribus.training.description import Run
from paribus.training.finetune import ROWS, tuned_path
from paribus.training.finetuner import begin
from paribus.training.learner import Finetuning
from paribus.training.profile import resolve
from paribus.training.steps import task_batch

Weights = dict[str, Tensor]  # by the names that a learner's parameters have


@dataclass
class Surface:
    """A fine-tuning: its initial and final weights, and the training examples to measure the loss on."""

    learner: Finetuning
    batches: Sequence[Batch]
    start: Weights
    end: Weights

    def loss(self, weights: Weights) -> float:
        """The mean training loss with these weights, without dropout, in full precision; inf if it is not finite."""
        with torch.no_grad():
            for name, parameter in self.learner.named_parameters():
                parameter.copy_(weights[name])
        sums, counts = 0.0, Counter[str]()
        objective = self.learner.objective
        with evaluating(self.learner):
            for batch in self.batches:
                losses, _ = objective(self.learner.encoder, batch)
                sums += math.fsum(float(part) for part in losses.values())
                counts.update(batch["counts"])
        mean = sums / objective.divisors(counts)["task"]
        return mean if math.isfinite(mean) else math.inf

    def distance(self) -> float:
        """How far the weights have moved."""
        return norm(difference(self.end, self.start))

    def line(self, alphas: Sequence[float]) -> list[float]:
        """Losses at start + alpha (end - start) (Goodfellow et al., arXiv 1412.6544)."""
        step = difference(self.end, self.start)
        return [self.loss(moved(self.start, (alpha, step))) for alpha in alphas]

    def plane(self, other: Weights, grid: Sequence[float]) -> list[list[float]]:
        """Losses at start + alpha (end - start) + beta (other - start); a row for each beta, in the order of the grid.

        Hao et al. (arXiv 1908.05620, section 4).
        """
        across, up = difference(self.end, self.start), difference(other, self.start)
        return [[self.loss(moved(self.start, (alpha, across), (beta, up))) for alpha in grid] for beta in grid]

    def around(self, radii: Sequence[float], directions: int) -> list[float]:
        """Losses at end + radius d, means over random directions d of the length that the weights have."""
        curves = [
            [self.loss(moved(self.end, (radius, direction))) for radius in radii]
            for direction in (random_direction(self.end, number) for number in range(directions))
        ]
        return [math.fsum(losses) / len(losses) for losses in zip(*curves, strict=True)]


def difference(one: Weights, other: Weights) -> Weights:
    """one - other."""
    return {name: one[name] - weight for name, weight in other.items()}


def moved(weights: Weights, *steps: tuple[float, Weights]) -> Weights:
    """The weights plus each direction times its length."""
    return {
        name: torch.stack([weight, *(length * way[name] for length, way in steps)]).sum(0)
        for name, weight in weights.items()
    }


def norm(weights: Weights) -> float:
    return math.sqrt(math.fsum(float(weight.double().square().sum()) for weight in weights.values()))


def random_direction(weights: Weights, seed: int) -> Weights:
    """A normal direction, each row of a matrix as long as the weights' own; vectors (biases, LayerNorms) stay.

    So the scale of the weights, which the loss may not depend on, does not make a place look flat (filter
    normalization, Li et al., arXiv 1712.09913, section 4).
    """
    direction = {}
    for name, weight in weights.items():
        if weight.ndim < 2:
            direction[name] = torch.zeros_like(weight)
            continue
        way = torch.randn(weight.shape, generator=named_generator(seed, name)).to(weight)
        inner = tuple(range(1, weight.ndim))
        length = torch.linalg.vector_norm(way, dim=inner, keepdim=True)
        direction[name] = way / length * torch.linalg.vector_norm(weight, dim=inner, keepdim=True)
    return direction


class Tunings:
    """The kept fine-tunings of a task in one run's folder. Raises UserError if the run keeps no weights."""

    def __init__(self, run: Run, folder: Path, task: str, examples: int) -> None:
        self.run, self.folder, self.task, self.examples = run, folder, task, examples
        profile = resolve(run.profile)
        self.device = torch.device("cuda" if profile.accelerator == "gpu" else "cpu")
        self.data: Data = run.data()
        self.encoder: Network = run.model.build(self.data.vocabulary, run.root_seed)
        checkpoint.load(self.encoder, folder / "model")

    def surface(self, seed: int) -> Surface:
        """The fine-tuning of that seed."""
        learner, work = begin(self.run, self.data, self.encoder, self.task, seed, self.folder)
        rows = work.encoded["train"]
        row_N = np.unique(np.linspace(0, len(rows.length_N) - 1, self.examples).round().astype(np.int64))
        row_N = row_N[np.argsort(rows.length_N[row_N], kind="stable")]
        parts = [part for at in range(0, len(row_N), ROWS) for part in rows.split(row_N[at : at + ROWS])]
        learner.to(self.device)
        batches = [learner.transfer_batch_to_device(task_batch(rows, part), self.device, 0) for part in parts]
        start = {name: parameter.detach().clone() for name, parameter in learner.named_parameters()}
        return Surface(learner, batches, start, self.end(seed))

    def end(self, seed: int) -> Weights:
        """The weights that the fine-tuning of that seed ended with."""
        tuned = saved.load(tuned_path(self.folder, self.task, seed), self.encoder)
        parts = {"encoder": tuned.encoder, "objective.heads.task": tuned.head}
        return {
            f"{part}.{name}": parameter.detach().to(self.device)
            for part, module in parts.items()
            for name, parameter in module.named_parameters()
        }
