"""A pre-training before its first step: composed from its config, and checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.corruption.examples import Stream
from paribus.data.order import Order
from paribus.data.tokens.prepare import Data
from paribus.models.network import Network
from paribus.objectives.attention_scores import AttentionScores
from paribus.objectives.evaluation import Evaluation, HeldOutEvaluation, LongerRows
from paribus.objectives.objective import Objective
from paribus.objectives.predicted_text import find_predicted_text
from paribus.runs.folder import STAGES
from paribus.tasks.types.base import Pooler
from paribus.training.budget import plan_of
from paribus.training.callbacks import Reporter
from paribus.training.checks import check_stage
from paribus.training.description import Run
from paribus.training.evaluate import Probe, TrainedProbe
from paribus.training.in_distribution import InDistribution
from paribus.training.profile import ResolvedProfile
from paribus.training.streams import held_out_examples, probe_examples

OPTIMIZER = "optimizer.pt"  # in a stage's folder: {name of a parameter: its state}
PROBES = {"nsp": ("next", 2), "sop": ("order", 2), "sentence": ("three", 3)}  # pairs, and how many kinds there are
TRAINED = ("nsp", "sop")  # what frozen encoders are asked about
FORCED = 0.5  # share of forced random pairs above which a note says so


@dataclass
class Stage:
    """The parts of a pre-training, and what they know of each other."""

    run: Run
    data: Data
    profile: ResolvedProfile
    folder: Path
    plan: Order[Stream]
    steps: int
    encoder: Network
    objective: Objective
    evaluation: HeldOutEvaluation
    further: list[Evaluation]  # measured beside it
    in_distribution: InDistribution | None
    pooler: Pooler | None  # of the checkpoint that it starts from, if it trains no head on pairs
    earlier: tuple[HeldOutEvaluation, ...]  # those of the stages before, which are asked again
    speaks: bool  # whether its head on tokens is trained
    reporter: Reporter | None = None  # of a run that is a trial of a search
    hands_on: bool = False  # whether the next stage asks for its optimizer

    @property
    def evaluations(self) -> list[Evaluation]:
        """All that is measured of the trained network, in the order of the record."""
        return [self.evaluation, *self.further]

    @property
    def before(self) -> Path | None:
        """The folder of the stage whose weights this one starts from."""
        if self.run.before is None:
            return None
        return (self.folder.parent if self.run.stage else self.folder / STAGES) / self.run.before.stage

    @property
    def kept(self) -> list[str]:
        """Files that the next stage asks for beside the checkpoint."""
        return [OPTIMIZER] if self.hands_on else []

    @property
    def head(self) -> Any:
        return self.objective.token_head

    @property
    def pair_head(self) -> Any:
        return self.objective.pair_head


def open_stage(run: Run, data: Data, profile: ResolvedProfile, folder: Path, earlier: Sequence[Stage] = ()) -> Stage:
    """Build what a stage needs: its network and objective, the order of its examples, its evaluations.

    The weights are those of the checkpoint that the model names, or initial ones; those of the stage before are loaded
    when the training begins.

    Args:
        earlier: the stages before, in order.

    Raises UserError for parts that do not fit each other (`checks.check_stage`).
    """
    plan, steps = plan_of(run, data)
    run.model.check_tokenizer(data.tokenizer)
    encoder = run.model.build(data.vocabulary, run.root_seed)
    objective = run.objective.build(encoder, data.vocabulary, run.root_seed)
    filled = objective.token_head is not None and run.model.fill(encoder, objective.token_head)
    run.model.fill_further(objective.further_parts)
    pooler, pair_head = None, objective.pair_head
    if pair_head is None:
        pooler = run.model.pooler(encoder, run.root_seed)
    elif not run.model.fill_pairs(encoder, pair_head, run.objective.needed_pairs) and steps == 0:
        pair_head = None  # its weights are random and stay so
    asked = held_out_examples(run, data)
    held_out = HeldOutEvaluation(
        asked,
        run.evaluation.examples,
        objective.token_head_name,
        run.objective.held_out(run.evaluation).targets,
        data.stores["train"].ids,
        find_predicted_text(asked, run.evaluation.examples, data) if run.objective.predicts_text else None,
    )
    attention = [AttentionScores(encoder, held_out.arrays)] if run.evaluation.attention else []
    stage = Stage(
        run,
        data,
        profile,
        folder,
        plan,
        steps,
        encoder,
        objective,
        evaluation=held_out,
        further=[
            *find_probes(run, data, objective, pair_head),
            *attention,
            *ask_longer(run, data, objective.token_head_name),
            *run.objective.evaluations(run, data),
        ],
        in_distribution=InDistribution(run, data, objective) if run.evaluation.own_points and steps else None,
        pooler=pooler,
        earlier=tuple(stage.evaluation for stage in earlier),
        speaks=filled or steps > 0 or any(stage.speaks for stage in earlier),
    )
    check_stage(stage)
    forced = plan.examples.report(0).get("forced_random_share", 0.0)
    if forced > FORCED:
        say(
            f"{forced:.0%} of the pairs are random because their chunk is one sentence: "
            "do blank lines separate documents only?"
        )
    return stage


def ask_longer(run: Run, data: Data, name: str | None) -> list[Evaluation]:
    """The evaluations in longer rows that the config sets, with as many tokens as the held-out one.

    Raises UserError for an objective without a head on tokens.
    """
    settings, train_ids = run.evaluation, data.stores["train"].ids
    if settings.lengths and name is None:
        cause = f"evaluation.lengths={settings.lengths}, but the objective predicts no tokens"
        raise UserError(cause, "set evaluation.lengths=[]")
    what = run.objective.held_out(settings).targets
    found: list[Evaluation] = []
    for times in settings.lengths:
        examples, most = held_out_examples(run, data, times), max(1, settings.examples // times)
        found.append(LongerRows(HeldOutEvaluation(examples, most, name, what, train_ids), times))
    return found


def find_probes(run: Run, data: Data, objective: Objective, pair_head: Any) -> list[Evaluation]:
    """The evaluations on pairs: of the model's own head, if it distinguishes as many kinds of pairs, and of trained
    probes, if the config sets them.

    Raises UserError if the validation split does not allow the pairs that the model is trained on. Other kinds are left
    out with a message.
    """
    settings = run.evaluation
    probes: list[Evaluation] = []
    for name, (pairs, kinds) in PROBES.items():
        try:
            if pair_head is not None and pair_head.kinds == kinds:
                probes.append(Probe(name, probe_examples(run, data, pairs), settings.examples))
            if settings.probe_examples and name in TRAINED:
                train = probe_examples(run, data, pairs, "train", masked=False)
                test = probe_examples(run, data, pairs, "validation", masked=False)
                probes.append(TrainedProbe(name, train, test, settings.probe_examples, settings.examples))
        except UserError as error:
            if name in objective.heads:
                raise
            say(f"no {name}_accuracy: {error}")
    return probes
