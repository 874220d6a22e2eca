"""A pre-training from its config: composed, and checked before any compute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import torch
from torch import nn

from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.data.tokens.prepare import Data
from paribus.models.heads.rows import PairHead
from paribus.models.network import Network
from paribus.objectives.mlm import MaskedLM
from paribus.objectives.objective import Objective
from paribus.training.budget import plan_of
from paribus.training.description import Run
from paribus.training.distributed import check as check_ranks
from paribus.training.evaluate import HeldOutEvaluation, Probe
from paribus.training.finetuning_checks import check_finetuning, check_transfer, check_untrained
from paribus.training.in_distribution import OwnEvaluation
from paribus.training.kept_optimizer import check_kept
from paribus.training.points import check_points
from paribus.training.probe import TrainedProbe
from paribus.training.profile import Profile
from paribus.training.replay import check_replay
from paribus.training.stage import Stage
from paribus.training.streams import held_out_examples, probe_examples

PROBES = {"nsp": ("next", 2), "sop": ("order", 2), "sentence": ("three", 3)}  # pairs, and how many kinds there are
FORCED = 0.5  # share of forced random pairs above which a note says so
TRAINED = ("nsp", "sop")  # what frozen encoders are asked about


def open_stage(run: Run, data: Data, profile: Profile, folder: Path, earlier: Sequence[Stage] = ()) -> Stage:
    """Compose everything and check it; `earlier`: the stages before. Raises UserError before any compute."""
    check_ranks(run, profile)
    if not 0.0 < run.trainer.layer_decay <= 1.0:
        raise UserError(
            f"trainer.layer_decay={run.trainer.layer_decay} is out of range", "give a share above 0, at most 1 for none"
        )
    plan, steps = plan_of(run, data)
    run.model.check_tokenizer(data.tokenizer)
    encoder = run.model.build(data.vocabulary, run.root_seed)
    check_continues(run)
    objective = run.objective.build(encoder, data.vocabulary, run.root_seed)
    filled = objective.token_head is not None and run.model.fill(encoder, objective.token_head)
    run.model.fill_further(objective.further_parts)
    pooler, asked = None, objective.pair_head
    if asked is None:
        pooler = run.model.pooler(encoder, run.root_seed)
    elif not run.model.fill_pairs(encoder, asked, run.objective.needed_pairs) and steps == 0:
        asked = None  # its weights are random and stay so
    evaluation = HeldOutEvaluation(held_out_examples(run, data), run.evaluation.examples, objective.token_head_name)
    probes = probes_of(run, data, objective, asked)
    own = OwnEvaluation(run, data, objective) if run.evaluation.own_points and steps else None
    stage = Stage(run, data, profile, folder, plan, steps, encoder, objective, evaluation, own, probes, pooler)
    stage.earlier = tuple(one.evaluation for one in earlier)
    stage.speaks = filled or steps > 0 or any(one.speaks for one in earlier)
    if not run.stage:  # only the last stage is fine-tuned
        has_pooler = pooler is not None or _has_pooler(run, steps, encoder)
        check_finetuning(run, encoder.depth, has_pooler, data.tokenizer)
        check_replay(run, objective.token_head)
        check_untrained(run, encoder)
        check_transfer(run, encoder)
        check_points(run, profile)
    if probes and run.members > 1:
        cause = f"members={run.members}, but pair accuracies need a single model"
        raise UserError(cause, "set evaluation.probe_examples=0 objective=mlm, or members=1")
    _warn_of_labels(plan.examples.report(0))
    return stage


def _has_pooler(run: Run, steps: int, network: Network) -> bool:
    """Whether a stage of the run trains a pooler, or the model came with one, or came without any weights."""
    paired = [own for own in run.chain if own.objective.needed_pairs]
    trained = any(steps if own is run else own.trainer.max_steps != 0 for own in paired)
    return trained or bool(paired and not run.model.lacks_pooler(network))


def check_continues(run: Run) -> None:
    """Raise UserError for an objective that needs a masked LM in the stage before, if there is none."""
    if run.objective.continues and not (run.before and isinstance(run.before.objective, MaskedLM)):
        mend = "set objective=mlm, and objective=electra in a further stage: +objective@stages.second.objective=electra"
        raise UserError("objective.joint=false, but no stage before it trains the generator as a masked LM", mend)


def check_chain(stages: Sequence[Stage]) -> None:
    """Raise UserError for a stage that cannot take the weights of the one before."""
    check_kept(stages)
    for before, stage in pairwise(stages):
        name = stage.run.last_stage
        if _shapes(stage.encoder) != _shapes(before.encoder):
            cause = f"stages.{name}.model has another shape than that of the stage before"
            raise UserError(cause, "give all stages the same size")
        parts, found = stage.objective.further_parts, before.objective.further_parts
        for part in (part for part in parts if part in found):
            if _shapes(parts[part]) != _shapes(found[part]):
                cause = f"stages.{name}.objective has another shape of '{part}' than the stage before"
                raise UserError(cause, "give both stages the same size")


def _shapes(module: nn.Module) -> dict[str, torch.Size]:
    return {name: weight.shape for name, weight in module.named_parameters()}


def probes_of(run: Run, data: Data, objective: Objective, head: PairHead | None) -> list[Probe | TrainedProbe]:
    """The evaluations on pairs: the model's own head, if it is given, and trained probes, if the config sets them.

    Raises UserError if the validation split does not allow the pairs that the model is trained on. Other kinds are left
    out with a message.
    """
    if run.evaluation.probe_examples < 0:
        raise UserError(
            f"evaluation.probe_examples={run.evaluation.probe_examples} is out of range",
            "give a number of pairs, or 0 for no probes",
        )
    found: list[Probe | TrainedProbe] = []
    for name in PROBES:
        try:
            found += _probes(run, data, head, name)
        except UserError as error:
            if name in objective.heads:
                raise
            say(f"no {name}_accuracy: {error}")
    return found


def _probes(run: Run, data: Data, head: PairHead | None, name: str) -> Iterator[Probe | TrainedProbe]:
    """The model's own head if it distinguishes as many kinds of pairs, and a trained probe if the config sets one."""
    own, (pairs, kinds) = run.evaluation, PROBES[name]
    if head is not None and head.kinds == kinds:
        yield Probe(name, probe_examples(run, data, pairs), own.examples)
    if own.probe_examples and name in TRAINED:
        train, test = (probe_examples(run, data, pairs, split, masked=False) for split in ("train", "validation"))
        yield TrainedProbe(name, train, test, own.probe_examples, own.examples)


def _warn_of_labels(report: dict[str, float]) -> None:
    """Warn if most pairs had to be random, as they have to if blank lines are inside documents."""
    if (forced := report.get("forced_random_share", 0.0)) > FORCED:
        say(
            f"{forced:.0%} of the pairs are random because their chunk is one sentence: "
            "do blank lines separate documents only?"
        )
