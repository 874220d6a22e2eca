"""The in-distribution loss of a pre-training: on held-out text under its own input format and noise, beside that of the
trivial baseline.

Arms are compared at the same number of tokens, when some may still be on the plateau of the trivial baseline and others
not. Such a comparison shows when an arm learned, not how good it is. In a record and in a table it is called `own`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.corruption.examples import spread_batches
from paribus.models.heads.head import name_places
from paribus.models.heads.vocabulary import ORIGINAL, find_places
from paribus.models.network import Network, as_batch
from paribus.objectives.evaluation import HeldOutEvaluation, evaluating, on_device
from paribus.runs.folder import read_lines
from paribus.training.streams import held_out_examples, training_examples
from paribus.training.trivial_baseline import Trivial, TrivialReader, find_kinds, join, shows_answers
from paribus.verdict.controls import Point

if TYPE_CHECKING:
    from paribus.corruption.collators.collator import Places
    from paribus.corruption.examples import Examples
    from paribus.data.sequences import Arrays
    from paribus.data.tokens.prepare import Data
    from paribus.models.network import Batch
    from paribus.objectives.objective import Objective
    from paribus.training.description import Run

ROWS: Final = 8192  # examples of the training split to which the trivial baseline is fitted, at most
OWN: Final = "own/"  # before the metric, in the lines of metrics.jsonl
TOKENS: Final = "train/tokens"


class InDistribution:
    """Held-out text as the run itself reads it: its input format, the head that shows what its network learns, and its
    noise, under a seed that no run has.
    """

    def __init__(self, run: Run, data: Data, objective: Objective) -> None:
        self.run, self.data = run, data
        self.examples: Examples | None = None
        self.held_out: HeldOutEvaluation | None = None
        most, name = run.evaluation.own_examples, objective.own_head_name
        try:
            if name is not None:
                self.examples = training_examples(run, data, "validation", run.evaluation.seed)
                self.held_out = (
                    GeneratorEvaluation(self.examples, most, objective)
                    if objective.writes
                    else HeldOutEvaluation(self.examples, most, name)
                )
        except UserError as error:  # no example of this length
            say(f"no loss on the arm's own noise: {error}")

    def measure(self, network: Network, objective: Objective) -> dict[str, float]:
        """{"mlm_loss": mean cross-entropy in nats}, with the head's name; empty if nothing is predicted."""
        values = {} if self.held_out is None else self.held_out.measure(network, objective)
        return {name: value for name, value in values.items() if name.endswith("_loss")}

    def measure_baseline(self, network: Network) -> float | None:
        """The mean loss of the trivial baseline at the same positions; None if nothing is predicted.

        Args:
            network: whose objective writes into the text, if it does.
        """
        if self.held_out is None:
            return None
        assert self.examples is not None
        train = spread_batches(training_examples(self.run, self.data, "train", self.run.evaluation.seed), ROWS)
        store, vocabulary, count_V = self.data.stores["train"], self.data.vocabulary, self.data.count_V
        kinds = find_kinds(vocabulary, store.ids, store.word_start)
        if isinstance(self.held_out, GeneratorEvaluation):
            fitted, asked = (
                [
                    (arrays, self._find_places(arrays))
                    for arrays in self.held_out.write(network, part, vocabulary.specials)
                ]
                for part in (train, self.held_out.arrays)
            )
            reader = TrivialReader(kinds, count_V, fitted, tells=self.held_out.name == "replaced")
            return float(reader.losses(join([places for _, places in asked])).sum() / self.held_out.asked)
        word_V = kinds.is_word(np.arange(vocabulary.size))
        drawn_V = word_V * (count_V if self.examples.corruption.inputs.needs_counts else 1.0)
        fitted = [(arrays, self._find_places(arrays)) for arrays in train]
        held_out = join([self._find_places(arrays) for arrays in self.held_out.arrays])
        if shows_answers([places for _, places in fitted]):
            fitted = [(arrays, places._replace(shown_P=None)) for arrays, places in fitted]
            held_out = held_out._replace(shown_P=None)
        trivial = Trivial(kinds, count_V, drawn_V / drawn_V.sum(), fitted)
        return float(trivial.losses(held_out).mean())

    def _find_places(self, arrays: Arrays) -> Places:
        assert self.examples is not None
        places = self.examples.collator.find_places(arrays)
        reorders = self.examples.corruption.masking.reorders
        return places._replace(shown_P=None) if reorders else places  # what is read there is from elsewhere

    def describe(self, path: Path, baseline: float | None) -> dict[str, Any]:
        """The part `own` of a record, from the lines of metrics.jsonl; empty if nothing was asked."""
        points = read_points(path)
        if self.held_out is None or not points:
            return {}
        generated = isinstance(self.held_out, GeneratorEvaluation)
        return {
            "head": self.held_out.name,
            "written": generated,
            "held_out": not generated and reads_held_out(self.run, self.data),
            "predicted": self.held_out.asked,
            "loss": points[-1].loss,
            "floor": baseline,
            "curve": [list(point) for point in points],
        }


class GeneratorEvaluation(HeldOutEvaluation):
    """The evaluation of an objective that writes into the text before its network reads it, as ELECTRA's generator:
    the loss of the network's own head on what is written into held-out text.

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

    def measure(self, network: Network, objective: Objective) -> dict[str, float]:
        """{"replaced_loss": mean cross-entropy in nats}, with the own head's name."""
        with evaluating(network, self.objective):
            read = self._read(network, self.arrays)
            losses = [float(self.head(network(name_places([self.head], batch)), batch)) for batch in read]
        return {f"{self.name}_loss": sum(losses) / self.asked}

    def write(self, network: Network, arrays: Iterable[Arrays], specials: Iterable[int]) -> Iterator[Arrays]:
        """The arrays as the network reads them. Their predicted positions are the ordinary tokens that it predicts;
        special tokens are never replaced.
        """
        arrays = list(arrays)
        with evaluating(network, self.objective):
            for given, batch in zip(arrays, self._read(network, arrays), strict=True):
                slot_N = (batch["slot_P"] if self.head.reads(batch) else find_places(batch)).cpu().numpy()
                read_BL, original_BL = (batch[name].cpu().numpy() for name in ("ids_BL", ORIGINAL))
                slot_P = slot_N[~np.isin(original_BL.reshape(-1)[slot_N], list(specials))]
                yield {**given, "ids_BL": read_BL, "slot_P": slot_P, "target_P": original_BL.reshape(-1)[slot_P]}

    def _read(self, network: Network, arrays: Iterable[Arrays]) -> Iterator[Batch]:
        for given in arrays:
            yield self.objective.write(network, on_device(as_batch(given), network))


def reads_held_out(run: Run, data: Data) -> bool:
    """Whether the held-out evaluation has the run's own input format and noise, except for when noise is drawn anew."""

    def describe(examples: Examples) -> str:
        corruption = examples.corruption
        parts = [examples.input, corruption.masking, corruption.inputs, corruption.targets, corruption.shuffling]
        return repr([{**vars(part), "schedule": None, "redraw": None, "kind": type(part)} for part in parts if part])

    return describe(training_examples(run, data, "validation")) == describe(held_out_examples(run, data))


def name_values(values: dict[str, float], tokens: int) -> dict[str, float]:
    """The values under their names in metrics.jsonl."""
    return {**{f"{OWN}{name}": value for name, value in values.items()}, TOKENS: tokens}


def read_points(path: Path) -> list[Point]:
    """The points that a run wrote into its metrics.jsonl, in the order of their steps."""
    points = {
        line["step"]: Point(line["step"], int(line[TOKENS]), value)
        for line in read_lines(path)
        for name, value in line.items()
        if name.startswith(OWN)
    }
    return sorted(points.values())
