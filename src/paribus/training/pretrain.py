"""The pre-training of a stage: take weights, train, evaluate, save the checkpoint, write its numbers."""

from __future__ import annotations

import copy
import math
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor, nn

from paribus.core.checksums import SUMS, find_damage, hash_file, matches, read_sealed, seal_folder
from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.files import replacing, write_sealed
from paribus.core.hub import MODEL
from paribus.core.processes import patient
from paribus.finetuning.method import LayerwiseDecay
from paribus.models import checkpoint
from paribus.models.network import Network
from paribus.objectives.evaluation import Evaluation
from paribus.objectives.objective import Objective
from paribus.runs.folder import CURVES
from paribus.runs.identity import Identity
from paribus.runs.wandb_tracker import Tracked
from paribus.training.callbacks import (
    LAST,
    Bar,
    Curves,
    Diverged,
    Evaluations,
    LastCheckpoint,
    Meter,
    StepCallback,
    append_line,
    evaluation_steps,
    keep_lines,
    saved_steps,
)
from paribus.training.description import Run
from paribus.training.distributed import GatherShards, RankGroup, helpers
from paribus.training.evaluate import placed
from paribus.training.finetune import make_snapshots
from paribus.training.in_distribution import name_values
from paribus.training.learner import Learner, Pretraining
from paribus.training.memory import change_tensors
from paribus.training.noise_scale import NoiseScale
from paribus.training.pretraining_record import describe_stage
from paribus.training.stage import OPTIMIZER, Stage
from paribus.training.steps import PretrainingSteps, StepData
from paribus.training.trainer import build_profiler, trainer

STAGE = "pretrain.json"


def pretrain(stage: Stage, tracked: Tracked | None = None) -> dict[str, Any]:
    """Train, evaluate and save a stage; returns its part of the record.

    An interrupted stage resumes, and a finished one is only loaded. Raises Diverged if a loss is not finite.
    """
    done = read_stage(stage.folder, stage.run.identity)
    if done is not None and all((stage.folder / name).is_file() for name in stage.kept):
        checkpoint.load(stage.encoder, stage.folder / MODEL)
        return done
    take_weights(stage)
    meter = Meter()
    curves = Curves(stage.folder / CURVES, stage.run.trainer.log_every)
    every = stage.run.trainer.noise_every
    noise = None
    if every is not None:
        noise = NoiseScale(stage.plan, every, stage.steps, stage.profile.microbatch, curves.write)
    if stage.steps:
        train(stage, meter, curves, noise, tracked)
    metrics, in_distribution, baseline, earlier = evaluate(stage)
    last = {f"validation/{name}": value for name, value in metrics.items()}
    last |= name_values(in_distribution, meter.counts["input_tokens"]) if in_distribution else {}
    append_line(stage.folder / CURVES, {"step": stage.steps, **last})
    if tracked is not None:
        tracked.log(last, stage.steps)
    if stage.steps:
        stage.objective.finish(stage.encoder)
    save(stage)
    part = describe_stage(stage, meter, metrics)
    if stage.in_distribution is not None:
        part["own"] = stage.in_distribution.describe(stage.folder / CURVES, baseline)
    part["realised"] |= {} if noise is None else {"noise_scale": noise.record()}
    part |= {"earlier": earlier} if earlier else {}
    part["curves"] = {CURVES: hash_file(stage.folder / CURVES)}
    write_sealed(stage.folder / STAGE, part, stage.run.identity.pretrain)
    (stage.folder / LAST).unlink(missing_ok=True)
    return part


def read_stage(folder: Path, identity: Identity) -> dict[str, Any] | None:
    """The record of a run's pre-training in a folder; None if it is not finished, or if it or its model is damaged."""
    part, model = read_sealed(folder / STAGE, identity.pretrain), folder / MODEL
    if part is None or not model.is_dir():
        return None
    damaged = [model / name] if (name := find_damage(model)) else []
    damaged += [] if matches(folder / CURVES, part.get("curves", {}).get(CURVES)) else [folder / CURVES]
    if damaged:
        say(f"{damaged[0]} is damaged; pre-training starts over")
        return None
    return part


def take_weights(stage: Stage) -> None:
    """Give a stage the final weights of the stage before, as `model=pretrained` would; if that trained static word
    vectors for another model, these alone.
    """
    before = stage.run.before
    if stage.before is None or before is None:
        return
    folder, encoder = stage.before / MODEL, stage.encoder
    if stage.run.starts_from_vectors:
        trained = before.model.initial(stage.data.vocabulary, before.root_seed)
        checkpoint.load(trained, folder)
        start_from(encoder, trained)
        return
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


def start_from(network: Network, trained: Network) -> None:
    """Give the word embeddings of a network the vectors of another. Special tokens keep theirs, which no static vectors
    have trained, and unknown words get the mean of all.
    """
    vocabulary = network.vocabulary
    word_V = torch.ones(vocabulary.size, dtype=torch.bool)
    word_V[list(vocabulary.specials)] = False
    with torch.no_grad():
        vectors_VD = trained.vectors_VD()
        network.table_VD[word_V] = vectors_VD[word_V]
        network.table_VD[vocabulary.unk] = vectors_VD[word_V].mean(0)


def train(stage: Stage, meter: Meter, curves: Curves, noise: NoiseScale | None, tracked: Tracked | None) -> None:
    """All steps of a stage that are left, with what is measured, written and shown on the way."""
    settings, in_distribution = stage.run.evaluation, stage.in_distribution
    keep_lines(stage.folder / CURVES)
    repeated = [evaluation for evaluation in stage.evaluations if evaluation.during_training]
    measure = partial(measure_all, repeated, stage.encoder, stage.objective)
    evaluations = [Evaluations(measure, settings.points, stage.steps, curves, stage.reporter)]
    if in_distribution is not None:
        measure = partial(in_distribution.measure, stage.encoder, stage.objective)
        evaluations.append(Evaluations(measure, settings.own_points, stage.steps, curves, name=name_values))
    callbacks = [
        *([] if noise is None else [noise]),
        meter,
        curves,
        *gather_shards(stage),
        *evaluations,
        *make_snapshots(stage),
        *keep_optimizer(stage),
        last_checkpoint(stage),
        Bar(f"{stage.run.label} pre-training", stage.steps),
    ]
    with helpers(stage.folder, stage.profile) as group:
        take_steps(stage, callbacks, tracked, group)


def help_to_train(stage: Stage, group: RankGroup) -> None:
    """What the other processes of a run do: the steps, and what all must do for a checkpoint."""
    take_weights(stage)
    take_steps(stage, [*gather_shards(stage), *keep_optimizer(stage), last_checkpoint(stage)], None, group)


def take_steps(stage: Stage, callbacks: list[Any], tracked: Tracked | None, group: RankGroup) -> None:
    """Lightning's loop, from the last checkpoint to the last step.

    Raises Stopped if a signal came in between, and UserError if the memory does not hold a step.
    """
    done = saved_steps(stage.folder)
    share, even = (group.rank, group.size), stage.profile.sharded
    steps = PretrainingSteps(stage.plan, stage.steps, stage.profile.microbatch, share, even)
    profiler = build_profiler(stage.run.profile.profiler, stage.folder)
    with (
        patient(),
        enough_memory(stage.run),
        stage.objective.while_training(stage.encoder),
        sparse_tables(stage),
    ):
        trainer(stage.profile, stage.steps, callbacks, tracked, group, profiler).fit(
            learner_of(stage),
            StepData(steps, done, stage.profile.workers),
            ckpt_path=stage.folder / LAST if done else None,
            weights_only=True,
        )


@contextmanager
def sparse_tables(stage: Stage) -> Iterator[None]:
    """A context in which the gradients of static word vectors are sparse: a step of a table then costs what the rows
    cost that it reads. Only if the optimizer allows that and no norm of all gradients is asked for.
    """
    run, whole = stage.run, stage.profile.ranks > 1 or stage.run.trainer.noise_every is not None
    if not run.model.shape.static or not run.optimizer.sparse or run.trainer.clip is not None or whole:
        yield
        return
    parts = (*stage.encoder.modules(), *stage.objective.modules())
    tables = [part for part in parts if isinstance(part, nn.Embedding)]
    for table in tables:
        table.sparse = True
    try:
        yield
    finally:
        for table in tables:
            table.sparse = False


def learner_of(stage: Stage) -> Pretraining:
    """The LightningModule of the stage: around its modules, or around copies that are cut into shards."""
    run, modules = stage.run, (stage.encoder, stage.objective)
    encoder, objective = copy.deepcopy(modules) if stage.profile.sharded else modules
    method = LayerwiseDecay(run.trainer.layer_decay, top_gap=0)  # ULMFiT, arXiv 1801.06146, section 3.2
    shares = {  # of networks, those of the objective included; 1 for all other weights
        f"{prefix}.{name}": network.rate(name)
        for prefix, network in nn.ModuleDict({"encoder": encoder, "objective": objective}).named_modules()
        if isinstance(network, Network)
        for name, _ in network.named_parameters()
    }

    def rate(name: str) -> float:
        inside = name.removeprefix("encoder.")
        return shares.get(name, 1.0) * (method.rate(encoder, inside) if inside != name else 1.0)

    learner = Pretraining(
        encoder,
        objective,
        run.optimizer,
        run.lr_schedule,
        total_steps=stage.steps,
        total_tokens=run.trainer.max_tokens or 0,
        clip=run.trainer.clip,
        seed=run.root_seed,
        rates=rate if run.trainer.layer_decay < 1.0 or set(shares.values()) - {1.0} else None,
    )
    if stage.profile.compile:
        learner.encoder.compile()
    return learner


def gather_shards(stage: Stage) -> list[GatherShards]:
    """The callback that gathers shards into the stage's modules before they are evaluated, if there are shards."""
    if not stage.profile.sharded:
        return []
    points = (stage.run.evaluation.points, stage.run.evaluation.own_points)
    at = set.union(*(evaluation_steps(number, stage.steps) for number in points))
    return [GatherShards({"encoder": stage.encoder, "objective": stage.objective}, at)]


def last_checkpoint(stage: Stage) -> LastCheckpoint:
    profile = stage.run.profile
    return LastCheckpoint(stage.folder, profile.checkpoint_seconds, profile.checkpoint_steps)


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


def evaluate(stage: Stage) -> tuple[dict[str, float], dict[str, float], float | None, list[dict[str, float]]]:
    """The metrics of a trained stage: held-out, in-distribution, the trivial baseline's loss beside that, and those of
    the stages before.

    Raises Diverged for a metric that is not finite: the last step can break what its own loss does not show.
    """
    with placed(stage.profile.device, stage.encoder, stage.objective):
        metrics = measure_all(stage.evaluations, stage.encoder, stage.objective)
        in_distribution: dict[str, float] = {}
        baseline = None
        if stage.in_distribution is not None:
            in_distribution = stage.in_distribution.measure(stage.encoder, stage.objective)
            baseline = stage.in_distribution.measure_baseline(stage.encoder)
        earlier = [before.measure(stage.encoder, stage.objective) for before in stage.earlier]
    if not all(map(math.isfinite, metrics.values())):
        raise Diverged(f"{metrics} after step {stage.steps}")
    return metrics, in_distribution, baseline, earlier


def measure_all(evaluations: Sequence[Evaluation], network: Network, objective: Objective) -> dict[str, float]:
    """{metric: value} of all of them."""
    return {name: value for one in evaluations for name, value in one.measure(network, objective).items()}


def save(stage: Stage) -> None:
    """The checkpoint, with its tokenizer, in the layout of `transformers`."""
    folder = stage.folder / MODEL
    checkpoint.save(stage.encoder, stage.head, folder, stage.pair_head, stage.pooler)
    checkpoint.save_further(stage.objective.further_parts, folder)
    shutil.copytree(stage.data.tokenizer_folder, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(SUMS))
    seal_folder(folder)


class KeepOptimizer(StepCallback):
    """Writes the optimizer's state after the last of `total` steps."""

    def __init__(self, folder: Path, total: int) -> None:
        self.path, self.total = folder / OPTIMIZER, total

    def after_step(self, trainer: pl.Trainer, module: Learner) -> None:
        if trainer.global_step == self.total and trainer.is_global_zero:
            state = trainer.optimizers[0].state
            kept = {name: change_tensors(state[p], Tensor.cpu) for name, p in module.named_parameters() if p in state}
            with replacing(self.path) as work:
                torch.save(kept, work)


class TakeOptimizer(pl.Callback):
    """Gives the optimizer, before its first step, the state of each parameter that the stage before had too."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / OPTIMIZER

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        if trainer.global_step:  # resumed: the checkpoint has it
            return
        kept, state = torch.load(self.path, weights_only=True), trainer.optimizers[0].state
        for name, parameter in module.named_parameters():
            if name in kept:
                state[parameter] = change_tensors(kept[name], lambda tensor: tensor.to(module.device))


def keep_optimizer(stage: Stage) -> list[pl.Callback]:
    """The callbacks that keep the stage's optimizer for the next one and load the previous stage's, if requested."""
    callbacks: list[pl.Callback] = []
    if stage.hands_on:
        callbacks.append(KeepOptimizer(stage.folder, stage.steps))
    if stage.run.trainer.keep_optimizer and stage.before is not None:
        callbacks.append(TakeOptimizer(stage.before))
    return callbacks
