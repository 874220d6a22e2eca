"""Evaluations of a trained network on held-out text: the base class, and the loss of a head that predicts tokens."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from paribus.corruption.examples import Examples, evaluation_batches
from paribus.data.sequences import Arrays
from paribus.models.ensemble import Ensemble
from paribus.models.heads.head import Head, name_places, summed_cross_entropy
from paribus.models.network import Batch, Network, as_batch
from paribus.objectives.predicted_text import PER_TEXT, PredictedText
from paribus.objectives.target_set import TargetSet as TargetSet

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.objectives.objective import Objective

Model = Network | Ensemble
AnyHead = Head | Ensemble  # an ensemble is its own head


class Evaluation(ABC):
    """What a trained network is asked, and what answers without a network are worth.

    Attributes:
        during_training: whether it is also measured at the points that `evaluation.points` sets, not only at the end.
    """

    during_training: ClassVar[bool] = False

    @property
    @abstractmethod
    def metrics(self) -> Sequence[str]:
        """The names of what is measured; a registered `Metric` says of a name how a table shows it."""

    @abstractmethod
    def measure(self, network: Network, objective: Objective) -> dict[str, float]:
        """{metric: value}, with both modules on the device that they are on, and left as they were."""

    def baselines(self) -> Mapping[str, Mapping[str, float]]:
        """{metric: {name of an answer without a network: its value}}."""
        return {}

    def target_sets(self) -> Mapping[str, TargetSet]:
        """{loss: the places that it is a mean over}."""
        return {}


class HeldOutEvaluation(Evaluation):
    """The loss of a head on tokens, on examples that are packed once.

    If the examples' input format reads rows in the order of the text (`Order.evaluation`), the network's memory is
    carried from row to row.

    Args:
        examples: of the validation split.
        most: examples that are read at most.
        name: of the head to evaluate, such as mlm; None for an objective without a head on tokens, which has no
            metrics here.
        what: the name of the set of targets; without one it is not recorded.
        train_ids: tokens of the training text, of which the unigram model is made; None for no baseline.
        text: the text that the targets stand for, if they are all of it: the loss is then given per character and per
            word too.
    """

    during_training = True

    def __init__(
        self,
        examples: Examples,
        most: int,
        name: str | None = "mlm",
        what: str = "",
        train_ids: NDArray[np.integer[Any]] | None = None,
        text: PredictedText | None = None,
    ) -> None:
        self.name, self.what, self.text = name, what, text
        self.vocabulary, self.train_ids = examples.vocabulary, train_ids
        self.arrays = list(evaluation_batches(examples, most))
        self.targets = np.concatenate([arrays["target_P"] for arrays in self.arrays])

    @property
    def metrics(self) -> Sequence[str]:
        if self.name is None:
            return ()
        per_token = tuple(f"{self.name}_{kind}" for kind in ("loss", "perplexity", "accuracy"))
        return per_token if self.text is None else (*per_token, *PER_TEXT)

    @property
    def asked(self) -> int:
        """How many positions the head is evaluated at."""
        return len(self.targets)

    def measure(self, network: Network, objective: Objective) -> dict[str, float]:
        """The metrics of the objective's head of this name; empty if it has none."""
        return self.measure_head(network, None if self.name is None else objective.named_heads.get(self.name))

    def measure_head(self, network: Model, head: AnyHead | None) -> dict[str, float]:
        """{"mlm_loss": mean cross-entropy in nats, "mlm_perplexity", "mlm_accuracy": share of exact predictions}, with
        the name of this evaluation; with a text also those of `PredictedText.measure`; empty if there is no head.

        Always in full precision, so that the profile does not change it.
        """
        if self.name is None or head is None:
            return {}
        loss, right = 0.0, 0
        with evaluating(network, head):
            for batch, logits_PV in predictions(network, head, self.arrays):
                loss += float(summed_cross_entropy(logits_PV, batch["target_P"]))
                right += int((logits_PV.argmax(-1) == batch["target_P"]).sum())
        return self._name(loss / len(self.targets), right / len(self.targets))

    def baselines(self) -> Mapping[str, Mapping[str, float]]:
        """The unigram model, and those of the text."""
        if self.train_ids is None:
            return {}
        found = {name: {"unigram": value} for name, value in self.unigram(self.train_ids, self.vocabulary).items()}
        if self.text is not None and self.name is not None:
            for name, values in self.text.baselines().items():
                found[name] |= values
        return found

    def target_sets(self) -> Mapping[str, TargetSet]:
        if not (self.name and self.what):
            return {}
        per_text = {} if self.text is None else self.text.target_sets()
        return {f"{self.name}_loss": TargetSet(self.what, self.asked), **per_text}

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
        return self._name(loss, float((self.targets == counts_V.argmax()).mean()))

    def _name(self, loss: float, accuracy: float) -> dict[str, float]:
        per_text = {} if self.text is None else self.text.measure(loss * len(self.targets))
        values = (loss, math.exp(min(loss, 700.0)), accuracy, *per_text.values())
        return dict(zip(self.metrics, values, strict=True))


class AskedAsMasked(HeldOutEvaluation):
    """The measures of a masked language model, of an objective whose head on tokens has another name."""

    during_training = False

    def measure(self, network: Network, objective: Objective) -> dict[str, float]:
        """Those of the objective's head on tokens."""
        return self.measure_head(network, objective.token_head)


class LongerRows(Evaluation):
    """The loss of a held-out evaluation whose rows are longer than those of the training, `times` as long."""

    def __init__(self, held_out: HeldOutEvaluation, times: int) -> None:
        self.held_out, self.loss = held_out, f"{held_out.name}_loss"
        self.metric = f"{self.loss}_x{times}"

    @property
    def metrics(self) -> Sequence[str]:
        return (self.metric,)

    def measure(self, network: Network, objective: Objective) -> dict[str, float]:
        """{"mlm_loss_x2": mean cross-entropy in nats}"""
        return {self.metric: self.held_out.measure(network, objective)[self.loss]}

    def baselines(self) -> Mapping[str, Mapping[str, float]]:
        return {self.metric: self.held_out.baselines()[self.loss]}

    def target_sets(self) -> Mapping[str, TargetSet]:
        return {self.metric: self.held_out.target_sets()[self.loss]}


@contextmanager
def evaluating(*modules: nn.Module) -> Iterator[None]:
    """A context without dropout and gradients; afterwards the modules are as they were."""
    before = [module.training for module in modules]
    for module in modules:
        module.eval()
    with torch.inference_mode():
        yield
    for module, training in zip(modules, before, strict=True):
        module.train(training)


def on_device(batch: Batch, model: nn.Module) -> Batch:
    device = next(model.parameters()).device
    return {key: value.to(device) if torch.is_tensor(value) else value for key, value in batch.items()}


def predictions(network: Model, head: AnyHead, arrays: Iterable[Arrays]) -> Iterator[tuple[Batch, Tensor]]:
    """(batch, the head's logits) of each packed batch.

    If batches say where rows begin (`StreamMarks`), the network reads on from the one before.
    """
    state: Any = None
    for batch in (on_device(as_batch(each), network) for each in arrays):
        outputs = network(name_places([head], batch), state=state)
        yield batch, head.logits(outputs, batch).float()
        if "begins_B" in batch:
            state = [each.state for each in outputs] if isinstance(network, Ensemble) else outputs.state
