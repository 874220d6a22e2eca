"""The held-out evaluation: fixed masks and pairs of the validation split, what trivial models make of the same, what a
linear classifier can read from a frozen network, and how much fine-tuning makes a model forget.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paribus.core.hub import MODEL
from paribus.corruption.examples import Examples
from paribus.finetuning.probe import fit_logistic, score_linear
from paribus.models import checkpoint
from paribus.models.ensemble import Ensemble
from paribus.models.heads.head import Head, name_places, summed_cross_entropy
from paribus.models.heads.rows import PairHead
from paribus.models.network import Batch, Network
from paribus.training.steps import as_batch

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.training.stage import Stage

ROWS = 64  # of a forward pass
FORGETTING = "forgetting"  # the metric of a fine-tuning; of the later stages alone it is stage_forgetting
Model = Network | Ensemble
AnyHead = Head | Ensemble  # an ensemble is its own head


class HeldOutEvaluation:
    """The examples that every arm is measured on, packed once: an input format, a corruption, a head and its metrics.

    Args:
        examples: of the validation split.
        most: examples that are read at most.
        name: of the head to evaluate, such as mlm; None for an objective without a head on tokens, which has no
            metrics here.
    """

    def __init__(self, examples: Examples, most: int, name: str | None = "mlm") -> None:
        self.name = name
        self.arrays = list(packed(examples, most))
        self.targets = np.concatenate([arrays["target_P"] for arrays in self.arrays])

    @property
    def asked(self) -> int:
        """How many positions the head is evaluated at."""
        return len(self.targets)

    def measure(self, network: Model, head: AnyHead | None) -> dict[str, float]:
        """{"mlm_loss": mean cross-entropy in nats, "mlm_perplexity", "mlm_accuracy": share of exact predictions}, with
        the head's name; empty if there is no such head.

        Always in full precision, so that the profile does not change it.
        """
        if self.name is None or head is None:
            return {}
        loss, right = 0.0, 0
        with evaluating(network, head):
            for batch, logits_PV in predictions(network, head, self.arrays):
                loss += float(summed_cross_entropy(logits_PV, batch["target_P"]))
                right += int((logits_PV.argmax(-1) == batch["target_P"]).sum())
        return self._metrics(loss / len(self.targets), right / len(self.targets))

    def unigram(self, train_ids: NDArray[np.integer[Any]], vocabulary: Vocabulary) -> dict[str, float]:
        """The same metrics for a model of word frequencies alone: add-one counts of the training tokens.

        If targets hold special tokens that the text lacks, such as sentinels, it also has their share there.
        """
        if self.name is None:
            return {}
        counts_V = np.ones(vocabulary.size, np.float64)
        for at in range(0, len(train_ids), 1 << 22):
            counts_V += np.bincount(train_ids[at : at + (1 << 22)], minlength=vocabulary.size)
        targets_V = np.bincount(self.targets, minlength=vocabulary.size)
        new = [token for token in vocabulary.specials if targets_V[token] and counts_V[token] == 1.0]
        if new:
            counts_V[new] += targets_V[new] * (counts_V.sum() / max(1, targets_V.sum() - targets_V[new].sum()))
        loss = float(-np.log(counts_V / counts_V.sum())[self.targets].mean())
        return self._metrics(loss, float((self.targets == counts_V.argmax()).mean()))

    def _metrics(self, loss: float, accuracy: float) -> dict[str, float]:
        values = {"loss": loss, "perplexity": math.exp(min(loss, 700.0)), "accuracy": accuracy}
        return {f"{self.name}_{kind}": value for kind, value in values.items()}


class Probe:
    """Pairs on which every model with a head on pairs is evaluated, masked as in training, packed once."""

    def __init__(self, name: str, examples: Examples, most: int) -> None:
        self.metric, self.arrays = f"{name}_accuracy", list(packed(examples, most))
        self.label_N = np.concatenate([arrays["label_N"] for arrays in self.arrays])

    def measure(self, network: Model, head: PairHead | None) -> dict[str, float]:
        """{"nsp_accuracy" or "sop_accuracy": share of pairs whose label is found}."""
        assert head is not None
        with evaluating(network, head):
            answers = predictions(network, head, self.arrays)
            right = sum(int((logits_B2.argmax(-1) == batch["label_N"]).sum()) for batch, logits_B2 in answers)
        return {self.metric: right / len(self.label_N)}

    def majority(self) -> dict[str, float]:
        """The same metric for the more frequent label: random segments outnumber true next ones."""
        return {self.metric: majority(self.label_N)}


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
        state_ND, label_N = _read_rows(network, packed(*self._train))
        test_ND, target_N = _read_rows(network, packed(*self._test))
        mean_D, spread_D = state_ND.mean(0), state_ND.std(0).clamp_min(1e-6)
        weight_CD = fit_logistic((state_ND - mean_D) / spread_D, label_N)
        answer_N = score_linear((test_ND - mean_D) / spread_D, weight_CD).argmax(-1)
        return {self.metric: float((answer_N == target_N).double().mean())}

    def majority(self) -> dict[str, float]:
        """The same metric for the more frequent label."""
        return {self.metric: majority(np.concatenate([arrays["label_N"] for arrays in packed(*self._test)]))}


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


def packed(examples: Examples, most: int) -> Iterator[dict[str, Any]]:
    """At most `most` examples, evenly spaced over a pass, in batches of similar length."""
    size = examples.size(0)
    rows = np.unique(np.linspace(0, size - 1, min(size, most)).round().astype(np.int64))
    rows = rows[np.argsort(examples.lengths(0)[rows], kind="stable")]
    for at in range(0, len(rows), ROWS):
        yield examples.batch(0, rows[at : at + ROWS])


@contextmanager
def evaluating(*modules: torch.nn.Module) -> Iterator[None]:
    """A context without dropout and gradients; afterwards the modules are as they were."""
    before = [module.training for module in modules]
    for module in modules:
        module.eval()
    with torch.inference_mode():
        yield
    for module, training in zip(modules, before, strict=True):
        module.train(training)


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


def on_device(batch: Batch, model: torch.nn.Module) -> Batch:
    device = next(model.parameters()).device
    return {key: value.to(device) if torch.is_tensor(value) else value for key, value in batch.items()}


def predictions(network: Model, head: AnyHead, arrays: list[dict[str, Any]]) -> Iterator[tuple[Batch, torch.Tensor]]:
    """(batch, the head's logits) of each packed batch."""
    for batch in (on_device(as_batch(each), network) for each in arrays):
        yield batch, head.logits(network(name_places([head], batch)), batch).float()


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
            return compare(self.before, self.evaluation.measure(tuned, head))


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
