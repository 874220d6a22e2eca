"""The pre-training of a run, from a plan of steps to a checkpoint and its numbers. Read it top to bottom:

`open_stage` composes and checks everything, `pretrain` trains, evaluates, saves and records, `_fit` gives Lightning's
Trainer its data module, module and callbacks. What follows are the parts of these three.
"""

from __future__ import annotations

import copy
import math
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import nn

from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.files import write_sealed
from paribus.core.processes import patient
from paribus.core.sealed import SUMS, find_damage, hash_file, matches, read_sealed, seal_folder
from paribus.core.sources import MODEL
from paribus.corruption.measure import measure
from paribus.data.tokens.prepare import Data
from paribus.finetuning.method import LayerwiseDecay
from paribus.models import checkpoint
from paribus.models.ensemble import Ensemble
from paribus.models.heads.rows import PairHead
from paribus.models.network import Network
from paribus.objectives.mlm import MaskedLM
from paribus.objectives.objective import Objective
from paribus.optim.groups import Rates
from paribus.runs.identity import Identity
from paribus.runs.store import CURVES
from paribus.runs.tracker import Tracked
from paribus.training.budget import plan_of, train_flops
from paribus.training.callbacks import (
    LAST,
    Bar,
    Curves,
    Diverged,
    Evaluations,
    LastCheckpoint,
    Meter,
    append_line,
    evaluation_steps,
    keep_lines,
    saved_steps,
)
from paribus.training.description import Run
from paribus.training.distributed import Gathering, Group, helpers
from paribus.training.distributed import check as check_ranks
from paribus.training.evaluate import HeldOutEvaluation, Probe, placed
from paribus.training.finetune import check_finetuning, check_transfer, check_untrained
from paribus.training.forgetting import Memory, compare
from paribus.training.kept_optimizer import callbacks_of, check_kept
from paribus.training.learner import Pretraining
from paribus.training.noise_scale import NoiseScale
from paribus.training.own import OwnEvaluation, name_values
from paribus.training.points import check_points, make_snapshots
from paribus.training.probe import TrainedProbe
from paribus.training.profile import Profile, process_peak
from paribus.training.replay import check_replay
from paribus.training.stage import Stage
from paribus.training.steps import PretrainingSteps, StepData
from paribus.training.streams import held_out_examples, probe_examples
from paribus.training.trainer import build_profiler, trainer

STAGE = "pretrain.json"
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


def pretrain(stage: Stage, tracked: Tracked | None = None) -> dict[str, Any]:
    """Train, evaluate and save the checkpoint; returns the stage's part of the record.

    An interrupted stage resumes, and a finished one is only loaded.
    """
    found = stage.folder / STAGE
    kept = read_stage(stage.folder, stage.run.identity)
    if kept is not None and all((stage.folder / name).is_file() for name in stage.kept):
        checkpoint.load(stage.encoder, stage.folder / MODEL)
        return kept
    _start(stage)
    meter = Meter()
    curves = Curves(stage.folder / CURVES, stage.run.trainer.log_every, meter)
    noise = _noise(stage, curves)
    if stage.steps:
        _fit(stage, meter, curves, noise, tracked)
    with placed(stage.profile.device, stage.encoder, stage.objective):
        metrics = stage.evaluation.measure(stage.encoder, stage.head)
        own = {} if stage.own is None else stage.own.measure(stage.encoder, stage.head)
        floor = None if stage.own is None else stage.own.find_floor(stage.encoder)
        for probe in stage.probes:
            metrics |= probe.measure(stage.encoder, stage.pair_head)
        earlier = [one.measure(stage.encoder, stage.head) if _is_asked(stage, one) else {} for one in stage.earlier]
    if not all(map(math.isfinite, metrics.values())):  # the last step can break what its own loss does not show
        raise Diverged(f"{metrics} after step {stage.steps}")
    last = {f"validation/{k}": v for k, v in metrics.items()}
    last |= name_values(own, meter.counts["input_tokens"]) if own else {}
    append_line(stage.folder / CURVES, {"step": stage.steps, **last})
    if tracked is not None:
        tracked.log(last, stage.steps)
    checkpoint.save(stage.encoder, stage.head, stage.folder / MODEL, stage.pair_head, stage.pooler)
    checkpoint.save_further(stage.objective.further_parts, stage.folder / MODEL)
    unsealed = shutil.ignore_patterns(SUMS)
    shutil.copytree(stage.data.tokenizer_folder, stage.folder / MODEL, dirs_exist_ok=True, ignore=unsealed)
    part = _record(stage, meter, metrics)
    if stage.own is not None:
        part["own"] = stage.own.describe(stage.folder / CURVES, floor)
    part["realised"] |= {} if noise is None else {"noise_scale": noise.record()}
    part |= {"earlier": earlier} if earlier else {}
    part["curves"] = {CURVES: hash_file(stage.folder / CURVES)}
    seal_folder(stage.folder / MODEL)
    write_sealed(found, part, stage.run.identity.pretrain)
    (stage.folder / LAST).unlink(missing_ok=True)
    return part


def read_stage(folder: Path, identity: Identity) -> dict[str, Any] | None:
    """The record of a run's pre-training in a folder; None if it is not finished, or if it or its model is damaged."""
    kept, model = read_sealed(folder / STAGE, identity.pretrain), folder / MODEL
    if kept is None or not model.is_dir():
        return None
    damaged = [model / name] if (name := find_damage(model)) else []
    damaged += [] if matches(folder / CURVES, kept.get("curves", {}).get(CURVES)) else [folder / CURVES]
    if damaged:
        say(f"{damaged[0]} is damaged; pre-training starts over")
        return None
    return kept


def _is_asked(stage: Stage, evaluation: HeldOutEvaluation) -> bool:
    """Whether the stage's head on tokens can answer the evaluation of an earlier stage."""
    return evaluation.name == stage.evaluation.name


def _start(stage: Stage) -> None:
    """Give a stage the final weights of the stage before, as `model=pretrained` would."""
    before = stage.run.before
    if stage.before is None or before is None:
        return
    folder, encoder = stage.before / MODEL, stage.encoder
    checkpoint.load(encoder, folder)
    if stage.head is not None:
        checkpoint.load_head(encoder, stage.head, folder)
    checkpoint.load_further(stage.objective.further_parts, folder)
    stage.objective.take_over(folder)
    if stage.pair_head is None:
        stage.pooler = checkpoint.find_pooler(encoder, folder)
    else:
        alike = stage.run.objective.needed_pairs == before.objective.needed_pairs
        checkpoint.load_pair_head(encoder, stage.pair_head, folder, alike)


def _fit(stage: Stage, meter: Meter, curves: Curves, noise: NoiseScale | None, tracked: Tracked | None) -> None:
    run = stage.run
    keep_lines(stage.folder / CURVES)
    callbacks = [
        *([] if noise is None else [noise]),
        meter,
        curves,
        *_gathering(stage),
        Evaluations(
            lambda _: stage.evaluation.measure(stage.encoder, stage.head),
            run.evaluation.points,
            stage.steps,
            curves,
            stage.reporter,
        ),
        *_own(stage, curves),
        *make_snapshots(stage),
        *callbacks_of(stage),
        _last_checkpoint(stage),
        Bar(f"{run.label} pre-training", stage.steps),
    ]
    with helpers(stage.folder, stage.profile) as group:
        _train(stage, callbacks, tracked, group)


def _own(stage: Stage, curves: Curves) -> list[Evaluations]:
    """The evaluation on the stage's own noise, if requested."""
    if (own := stage.own) is None:
        return []
    points = stage.run.evaluation.own_points
    return [
        Evaluations(lambda _: own.measure(stage.encoder, stage.head), points, stage.steps, curves, name=name_values)
    ]


def _train(stage: Stage, callbacks: list[Any], tracked: Tracked | None, group: Group) -> None:
    """Train from the last checkpoint to the last step.

    Raises Stopped if a signal came in between, and UserError if the memory does not hold a step.
    """
    done, learner = saved_steps(stage.folder), learner_of(stage)
    share, even = (group.rank, group.size), stage.profile.sharded
    steps = PretrainingSteps(stage.plan, stage.steps, stage.profile.microbatch, share, even)
    profiler = build_profiler(stage.run.profile.profiler, stage.folder)
    with patient(), enough_memory(stage.run):
        trainer(stage.profile, stage.steps, callbacks, tracked, group, profiler).fit(
            learner,
            StepData(steps, done, stage.profile.workers),
            ckpt_path=stage.folder / LAST if done else None,
            weights_only=True,
        )


@contextmanager
def enough_memory(run: Run) -> Iterator[None]:
    """Raise UserError that names the microbatch to set, if the block runs out of memory."""
    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, torch.OutOfMemoryError) and "can't allocate memory" not in str(error):
            raise
        size, now = run.batch.size, min(run.profile.microbatch or run.batch.size, run.batch.size)
        less = max((part for part in range(1, now) if size % part == 0), default=None)
        mend = "choose a smaller model or input.length"
        if less is not None:
            mend = f"set profile.microbatch={less}: the batch stays {size}, and the run resumes"
        raise UserError(f"{now} sequences of {run.input.length} tokens do not fit into memory at once", mend) from error


def learner_of(stage: Stage) -> Pretraining:
    """The LightningModule of the stage: around its modules, or around copies that are cut into shards."""
    run, own = stage.run, (stage.encoder, stage.objective)
    encoder, objective = copy.deepcopy(own) if stage.profile.sharded else own
    learner = Pretraining(
        encoder,
        objective,
        run.optimizer,
        run.lr_schedule,
        total_steps=stage.steps,
        total_tokens=run.trainer.max_tokens or 0,
        clip=run.trainer.clip,
        seed=run.root_seed,
        rates=_rates(encoder, run.trainer.layer_decay),
    )
    if stage.profile.compile:
        learner.encoder.compile()
    return learner


def _rates(encoder: Network, decay: float) -> Rates | None:
    """Shares of the rate by the learner's names of parameters, lower for lower layers (ULMFiT, section 3.2)."""
    if decay == 1.0:
        return None
    method = LayerwiseDecay(decay, top_gap=0)
    return lambda name: method.rate(encoder, own) if (own := name.removeprefix("encoder.")) != name else 1.0


def help_to_train(stage: Stage, group: Group) -> None:
    """What the other processes of a run do: the steps, and what all must do for a checkpoint."""
    _start(stage)
    _train(stage, [*_gathering(stage), *callbacks_of(stage), _last_checkpoint(stage)], None, group)


def _noise(stage: Stage, curves: Curves) -> NoiseScale | None:
    """The callback that measures the gradient noise scale, if requested."""
    every = stage.run.trainer.noise_every
    if every is None:
        return None
    return NoiseScale(stage.plan, every, stage.steps, stage.profile.microbatch, curves.write)


def _gathering(stage: Stage) -> list[Gathering]:
    """The callback that gathers shards into the stage's modules, if there are shards."""
    if not stage.profile.sharded:
        return []
    points = (stage.run.evaluation.points, stage.run.evaluation.own_points)
    at = set.union(*(evaluation_steps(number, stage.steps) for number in points))
    return [Gathering({"encoder": stage.encoder, "objective": stage.objective}, at)]


def _last_checkpoint(stage: Stage) -> LastCheckpoint:
    own = stage.run.profile
    return LastCheckpoint(stage.folder, own.checkpoint_seconds, own.checkpoint_steps)


def _record(stage: Stage, meter: Meter, metrics: dict[str, float]) -> dict[str, Any]:
    counts, size, examples = meter.counts, stage.data.vocabulary.size, stage.plan.examples
    tokens, predicted = counts["input_tokens"], counts["predicted"] + counts["moved"]
    flops = train_flops(stage.run, size, tokens, predicted, counts["sequences"])
    rate = meter.tokens_per_second()
    peak = process_peak(stage.profile) * stage.profile.ranks if tokens else 0.0
    train_ids = stage.data.stores["train"].ids
    sources = examples.read(counts)
    return {
        "metrics": metrics,
        "baselines": {
            **{
                name: {"unigram": value}
                for name, value in stage.evaluation.unigram(train_ids, stage.data.vocabulary).items()
            },
            **{name: {"majority": value} for probe in stage.probes for name, value in probe.majority().items()},
        },
        "budget": {
            "raw_tokens": counts["raw_tokens"],
            "input_tokens": tokens,
            "predicted_tokens": predicted,
            **({"target_tokens": counts["target_tokens"]} if "target_tokens" in counts else {}),
            "padding_tokens": counts["padding"],
            "flops": flops,
            "train_seconds": meter.train_seconds,
            "steps": stage.steps,
            "sequences": counts["sequences"],
        },
        "speed": {
            "tokens_per_second": rate,
            "mfu": flops / tokens * rate / peak if tokens else 0.0,
            "peak_flops": peak,
            "step_share": meter.step_seconds / meter.train_seconds if tokens else 0.0,
        },
        "realised": {
            **measure(examples, stage.data.vocabulary),
            "padding_share": examples.collator.rates(counts)["padding_share"],
            "epochs": counts["sequences"] / examples.readings / examples.size(0),
            "parameters": stage.encoder.parameter_count(),
            **({"sources": sources} if sources else {}),
        },
    }


def in_sum(stages: Sequence[Stage], parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The last stage's part of the record with the budget of all; `stages` holds metrics and budget of each.

    Its loss on its own noise is that of the last stage that took a step, whose weights these are.
    """
    last = parts[-1]
    if len(parts) == 1:
        return last
    names = [stage.run.last_stage for stage in stages]
    each = [
        {
            "stage": name,
            **{key: part[key] for key in ("metrics", "budget", "realised")},
            "earlier": dict(zip(names, part.get("earlier", []), strict=False)),
        }
        for name, part in zip(names, parts, strict=True)
    ]
    keys = dict.fromkeys(key for part in parts for key in part["budget"])
    budget = {key: sum(part["budget"].get(key, 0) for part in parts) for key in keys}
    lost = compare(parts[0]["metrics"], last["earlier"][0]) if stages[0].speaks else {}
    lost = {f"stage_{name}": nats for name, nats in lost.items()}
    trained = next((part for part in reversed(parts) if part["budget"]["steps"]), last)
    own = {key: value for key, value in last.items() if key not in ("earlier", "own")}
    own |= {"own": trained["own"]} if "own" in trained else {}
    return {**own, "metrics": {**last["metrics"], **lost}, "budget": budget, "stages": each}


def remember(stage: Stage, part: dict[str, Any]) -> Memory | None:
    """The data for replay and forgetting in fine-tuning, if requested; `part`: the last stage's part of the record."""
    settings = stage.run.finetune
    if stage.head is None or not (settings.forgetting or settings.replay):
        return None
    first = part["stages"][0] if "stages" in part else part
    evaluation = stage.earlier[0] if stage.earlier else stage.evaluation
    checkpoint.load_head(stage.encoder, stage.head, stage.folder / MODEL)  # a stage that was found done has none yet
    return Memory(evaluation, stage.encoder, stage.head, first["metrics"] if stage.speaks else {})


def combine(stages: Sequence[Stage], parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The part of the record of one model, or of several that predict together (T5, arXiv 1910.10683, section 3.6).

    For several, the metrics are those of their mean logits and the budget is their sum; the rest is from the first.
    """
    first, part = stages[0], parts[0]
    if len(stages) == 1:
        return part
    for stage in stages:  # one that was found done has no head yet
        checkpoint.load_head(stage.encoder, stage.head, stage.folder / MODEL)
    ensemble: Any = Ensemble([(stage.encoder, stage.head) for stage in stages])
    with placed(first.profile.device, ensemble):
        metrics = first.evaluation.measure(ensemble, ensemble)
    return {
        **part,
        "metrics": metrics,
        "budget": {key: sum(own["budget"][key] for own in parts) for key in part["budget"]},
        "realised": {**part["realised"], "members": len(stages)},
    }


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
