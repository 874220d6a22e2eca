"""The time that an arm takes on this machine, measured over a few of its own steps."""

from __future__ import annotations

import copy
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytorch_lightning as pl

from paribus.data.tokens.prepare import Data
from paribus.models.network import Network
from paribus.training.callbacks import evaluation_steps
from paribus.training.description import Run
from paribus.training.evaluate import placed
from paribus.training.finetune import ROWS, count_rounds, judge_answers
from paribus.training.finetuner import (
    Base,
    TaskWork,
    encode_training,
    finetuner,
    joint_finetuner,
    joint_tasks,
    read_with,
)
from paribus.training.pretrain import learner_of
from paribus.training.probing import probe_once
from paribus.training.profile import ResolvedProfile, resolve
from paribus.training.stage import Stage, open_stage
from paribus.training.steps import PretrainingSteps, StepData, Steps
from paribus.training.trainer import Setup, trainer

STEPS = 24  # measured, after the first WARM ones
WARM = 4
BATCHES = 4  # of an evaluation


class Fit(NamedTuple):
    """Seconds of a call of Lightning's Trainer beside its steps, and of a step."""

    fixed: float = 0.0
    step: float = 0.0

    def of(self, steps: int) -> float:
        """Seconds of a call with this many steps."""
        return self.fixed + steps * self.step


class StepClock(pl.Callback):
    """Wall-clock seconds between the ends of steps, loading included."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_train_batch_end(self, *unused: object) -> None:
        self.ends.append(time.perf_counter())

    def seconds(self) -> float:
        """Median seconds per step without the first steps; 0 if there were too few."""
        gaps = [after - before for before, after in zip(self.ends[WARM:], self.ends[WARM + 1 :], strict=False)]
        return statistics.median(gaps) if gaps else 0.0


def seconds(run: Run) -> dict[str, Any]:
    """What one run of the arm takes after its libraries are loaded, nothing kept.

    Returns {"seconds_per_step": of its last pre-training, "start_seconds": until its first step, "pretrain_seconds":
    its evaluations included, "finetune_seconds", "stages": {the name of its pre-training: seconds} in order}.
    """
    profile, start, step = resolve(run.profile), 0.0, 0.0
    stages: dict[str, float] = {}
    for each in run.chain:
        before = time.perf_counter()
        data = each.data()
        with tempfile.TemporaryDirectory() as folder:
            stage = open_stage(each, data, profile, Path(folder))
        start += time.perf_counter() - before
        fit = Fit()
        if stage.steps:
            steps = PretrainingSteps(stage.plan, stage.steps, profile.microbatch)
            fit = measure_steps(learner_of(stage), steps, profile)
        stages[each.identity.pretrain], step = fit.of(stage.steps) + time_evaluations(stage), fit.step
    tasks = sum(time_task(run, data, stage.encoder, name, profile) for name in run.tuned_tasks)
    if run.finetune.joint:
        encoded = {name: encode_training(run, data, name) for name in joint_tasks(run)}
        learner, joint = joint_finetuner(Base(run, read_with(run, stage.encoder), None), encoded, 0)
        tasks += measure_steps(learner, joint, profile).of(joint.total) * len(run.finetune.seeds)
    return {
        "seconds_per_step": step,
        "start_seconds": start,
        "pretrain_seconds": sum(stages.values()) * run.members,
        "finetune_seconds": tasks * run.members * run.finetune.ensemble * count_rounds(run.evaluation.task_points),
        "stages": stages,
    }


def time_evaluations(stage: Stage) -> float:
    """All held-out evaluations of a pre-training, from a few batches of each."""
    evaluations = [stage.evaluation, *stage.earlier]
    points = [stage.run.evaluation.points, *(1 for _ in stage.earlier)]
    total = 0.0
    if stage.in_distribution is not None and stage.in_distribution.held_out is not None:
        evaluations.append(stage.in_distribution.held_out)
        points.append(stage.run.evaluation.own_points)
        total += _timed(partial(stage.in_distribution.measure_baseline, stage.encoder))
    with placed(stage.profile.device, stage.encoder, stage.objective):
        for evaluation, often in zip(evaluations, points, strict=True):
            part = copy.copy(evaluation)
            part.arrays = evaluation.arrays[:: max(1, len(evaluation.arrays) // BATCHES)]
            taken = _timed(partial(part.measure, stage.encoder, stage.objective)) / len(part.arrays)
            total += taken * len(evaluation.arrays) * (1 + len(evaluation_steps(often, stage.steps)))
        for further in stage.further:
            often = stage.run.evaluation.points if further.during_training else 0
            taken = _timed(partial(further.measure, stage.encoder, stage.objective))
            total += taken * (1 + len(evaluation_steps(often, stage.steps)))
        return total


def time_probes(run: Run, data: Data, encoder: Network, name: str, profile: ResolvedProfile) -> float:
    """All probes of a task, from those on a few examples of each set."""
    task_type, examples = run.task_type(name), run.tasks[name].examples(run.cache)
    few = {split: rows[: BATCHES * ROWS] for split, rows in examples.items()}

    def probe_few() -> None:
        encoded = {
            split: task_type.encode(rows, data.tokenizer, data.vocabulary, run.finetune) for split, rows in few.items()
        }
        with tempfile.TemporaryDirectory() as folder:
            work, setup = TaskWork(name, task_type, few, encoded), Setup(profile, Path(folder), None)
            probe_once(Base(run, read_with(run, encoder), None), work, 0, setup)

    share = sum(map(len, few.values())) / sum(map(len, examples.values()))
    return _timed(probe_few) / share * len(run.finetune.seeds)


def time_task(run: Run, data: Data, encoder: Network, name: str, profile: ResolvedProfile) -> float:
    """All fine-tunings of a task, with the answers that are evaluated, or its probes."""
    run = run.tuned_for(name)
    if run.finetune.probe:
        return time_probes(run, data, encoder, name, profile)
    settings, task_type, examples = run.finetune, run.task_type(name), run.tasks[name].examples(run.cache)
    train, validation = examples["train"], examples["validation"]
    few, asked = train[: settings.batch_size * (WARM + STEPS)], validation[: BATCHES * ROWS]
    before = time.perf_counter()
    encoded, held_out = (task_type.encode(rows, data.tokenizer, data.vocabulary, settings) for rows in (few, asked))
    encoding = (time.perf_counter() - before) / (len(few) + len(asked)) * sum(map(len, examples.values()))
    learner, steps = finetuner(run, read_with(run, encoder), encoded, task_type, 0)
    count = len(train) * len(encoded.length_N) // len(few)
    count = min(count, settings.max_examples or count)
    training = measure_steps(learner, steps, profile).of(-(-count // settings.batch_size) * settings.epochs)
    head = learner.objective.heads["task"]
    with placed(profile.device, learner.encoder, head):
        answer = _timed(lambda: judge_answers(learner.encoder, head, task_type, held_out, asked)) / len(asked)
    answers = sum(len(rows) for split, rows in examples.items() if split != "train")
    answers += settings.points * len(validation)
    return encoding + (training + answer * answers) * len(settings.seeds)


def measure_steps(learner: pl.LightningModule, steps: Steps, profile: ResolvedProfile) -> Fit:
    """The time of a training, from its first steps."""
    clock = StepClock()
    few = min(steps.total, WARM + STEPS)
    loop = trainer(profile, few, [clock])
    whole = _timed(lambda: loop.fit(learner, StepData(steps, 0, profile.workers)))
    step = clock.seconds()
    return Fit(max(0.0, whole - few * step), step)


def _timed(work: Callable[[], Any]) -> float:
    before = time.perf_counter()
    work()
    return time.perf_counter() - before
