"""The pre-training of a run, from a checked stage to a checkpoint and its numbers. Read it top to bottom:

`pretrain` trains, evaluates, saves and records, and `_fit` gives Lightning's Trainer its data module, module and
callbacks. What follows are the parts of these two.
"""

from __future__ import annotations

import copy
import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from paribus.core.checksums import SUMS, find_damage, hash_file, matches, read_sealed, seal_folder
from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.files import write_sealed
from paribus.core.hub import MODEL
from paribus.core.processes import patient
from paribus.finetuning.method import LayerwiseDecay
from paribus.models import checkpoint
from paribus.models.network import Network
from paribus.optim.groups import Rates
from paribus.runs.folder import CURVES
from paribus.runs.identity import Identity
from paribus.runs.tracker import Tracked
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
from paribus.training.evaluate import HeldOutEvaluation, placed
from paribus.training.in_distribution import name_values
from paribus.training.kept_optimizer import callbacks_of
from paribus.training.learner import Pretraining
from paribus.training.noise_scale import NoiseScale
from paribus.training.points import make_snapshots
from paribus.training.pretraining_record import describe_stage
from paribus.training.stage import Stage
from paribus.training.steps import PretrainingSteps, StepData
from paribus.training.trainer import build_profiler, trainer

STAGE = "pretrain.json"


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
    part = describe_stage(stage, meter, metrics)
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
