"""Evaluations on pairs of the validation split: of a head on pairs, and of what a linear classifier can read from a
frozen network. And how much fine-tuning makes a model forget.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paribus.core.hub import MODEL
from paribus.corruption.examples import Examples, spread_batches
from paribus.finetuning.probe import fit_logistic, score_linear
from paribus.models import checkpoint
from paribus.models.heads.head import Head
from paribus.models.network import Network, as_batch
from paribus.objectives.evaluation import Evaluation, HeldOutEvaluation, evaluating, on_device, predictions

if TYPE_CHECKING:
    from paribus.objectives.objective import Objective
    from paribus.training.stage import Stage

FORGETTING = "forgetting"  # the metric of a fine-tuning; of the later stages alone it is stage_forgetting


class Probe(Evaluation):
    """Pairs on which every model with a head on pairs is evaluated, masked as in training, packed once."""

    def __init__(self, name: str, examples: Examples, most: int) -> None:
        self.metric, self.arrays = f"{name}_accuracy", list(spread_batches(examples, most))
        self.label_N = np.concatenate([arrays["label_N"] for arrays in self.arrays])

    @property
    def metrics(self) -> Sequence[str]:
        return (self.metric,)

    def measure(self, network: Network, objective: Objective) -> dict[str, float]:
        """{"nsp_accuracy" or "sop_accuracy": share of pairs whose label is found}."""
        head = objective.pair_head
        assert head is not None
        with evaluating(network, head):
            answers = predictions(network, head, self.arrays)
            right = sum(int((logits_B2.argmax(-1) == batch["label_N"]).sum()) for batch, logits_B2 in answers)
        return {self.metric: right / len(self.label_N)}

    def baselines(self) -> Mapping[str, Mapping[str, float]]:
        """The more frequent label: random segments outnumber true next ones."""
        return {self.metric: {"majority": majority(self.label_N)}}


class TrainedProbe(Evaluation):
    """A logistic regression on what summarizes a row ([CLS]) in a frozen network, which reads pairs without masks.

    `train` and `test` hold the same kind of pairs; at most `most_train` and `most` of them are read.
    """

    def __init__(self, name: str, train: Examples, test: Examples, most_train: int, most: int) -> None:
        self.metric = f"{name}_probe_accuracy"
        self._train, self._test = (train, most_train), (test, most)

    @property
    def metrics(self) -> Sequence[str]:
        return (self.metric,)

    def measure(self, network: Network, objective: Objective | None = None) -> dict[str, float]:
        """{"nsp_probe_accuracy" or "sop_probe_accuracy": share of pairs whose label is found}.

        The network is not changed, and its own heads are not asked.
        """
        state_ND, label_N = _read_rows(network, spread_batches(*self._train))
        test_ND, target_N = _read_rows(network, spread_batches(*self._test))
        mean_D, spread_D = state_ND.mean(0), state_ND.std(0).clamp_min(1e-6)
        weight_CD = fit_logistic((state_ND - mean_D) / spread_D, label_N)
        answer_N = score_linear((test_ND - mean_D) / spread_D, weight_CD).argmax(-1)
        return {self.metric: float((answer_N == target_N).double().mean())}

    def baselines(self) -> Mapping[str, Mapping[str, float]]:
        """The more frequent label."""
        label_N = np.concatenate([arrays["label_N"] for arrays in spread_batches(*self._test)])
        return {self.metric: {"majority": majority(label_N)}}


def _read_rows(network: Network, arrays: Iterable[dict[str, Any]]) -> tuple[Tensor, Tensor]:
    """([CLS] states [N, D] in double precision, labels [N]) of packed pairs, on the CPU."""
    read = []
    with evaluating(network):
        for batch in (on_device(as_batch(each), network) for each in arrays):
            states = network({**batch, "read_P": batch["length_B"].new_zeros(0)})  # the first state of each row alone
            read.append((states.row_BD.double().cpu(), batch["label_N"].cpu()))
        states, labels = (torch.cat(column) for column in zip(*read, strict=True))
    return states.clone(), labels.clone()


def majority(label_N: NDArray[np.integer[Any]]) -> float:
    """The share of the most frequent label."""
    return float(np.bincount(label_N).max() / len(label_N))


@contextmanager
def placed(device: str, *modules: torch.nn.Module) -> Iterator[None]:
    """A context with the modules on a device. Afterwards they are on the CPU, where Lightning leaves them after
    training, and where heads and checkpoints are made.
    """
    for module in modules:
        module.to(device)
    try:
        yield
    finally:
        for module in modules:
            module.to("cpu")


@dataclass(frozen=True)
class Memory:
    """The held-out evaluation of a run's first stage, with fixed masks, to be repeated after fine-tuning.

    Attributes:
        encoder, head: as the last stage left them; the head may be tied to the word embeddings.
        before: the metrics at the end of the first stage; empty if the head is not trained.
    """

    evaluation: HeldOutEvaluation
    encoder: Network
    head: Head
    before: Mapping[str, float]

    def ask(self, tuned: Network, device: str, rehearsed: Head | None = None) -> dict[str, float]:
        """{"forgetting": nats} of a fine-tuned copy of the encoder; empty if there is nothing to forget.

        Its head is the one that fine-tuning trained on text, or else that of pre-training.
        """
        if not self.before:
            return {}
        head = rehearsed or copy.deepcopy(self.head, {id(self.encoder): tuned})
        with placed(device, head):
            return compare(self.before, self.evaluation.measure_head(tuned, head))


def compare(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """{"forgetting": by how many nats the held-out loss rose}; empty if it was not measured both times."""
    name = next((name for name in after if name.endswith("_loss") and name in before), None)
    return {} if name is None else {FORGETTING: after[name] - before[name]}


def remember(stage: Stage, part: dict[str, Any]) -> Memory | None:
    """The data for replay and forgetting in fine-tuning, if requested; `part`: the last stage's part of the record."""
    settings = stage.run.finetune
    if stage.head is None or not (settings.forgetting or settings.replay):
        return None
    first = part["stages"][0] if "stages" in part else part
    evaluation = stage.earlier[0] if stage.earlier else stage.evaluation
    checkpoint.load_head(stage.encoder, stage.head, stage.folder / MODEL)  # a stage that was found done has none yet
    return Memory(evaluation, stage.encoder, stage.head, first["metrics"] if stage.speaks else {})
