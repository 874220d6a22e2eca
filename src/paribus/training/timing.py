"""How long an arm takes on this machine, measured by a few of its own steps."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

from paribus.data.tokens.prepare import Data
from paribus.models.network import Network
from paribus.training.description import Run
from paribus.training.finetune import Base, encode_training, finetuner, joint_finetuner, joint_tasks, read_with
from paribus.training.lightning import pl
from paribus.training.points import count_rounds
from paribus.training.pretrain import learner_of, open_stage
from paribus.training.steps import PretrainingSteps, StepData, Steps
from paribus.training.trainer import Profile, resolve, trainer

STEPS = 24  # measured, after the first WARM ones
WARM = 4


class _Clock(pl.Callback):
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
    """{"seconds_per_step", "start_seconds", "pretrain_seconds", "finetune_seconds", "seconds"} of one run of the arm,
    nothing kept. What its evaluations take is not in it. `stages`: {the name of its pre-training: seconds} in order.
    """
    profile, last = resolve(run.profile), 0.0
    stages: dict[str, float] = {}
    for own in run.chain:
        data = own.data()
        with tempfile.TemporaryDirectory() as folder:
            stage = open_stage(own, data, profile, Path(folder))
        steps = PretrainingSteps(stage.plan, stage.steps, profile.microbatch)
        last = _measure(learner_of(stage), steps, profile) if stage.steps else 0.0
        stages[own.identity.pretrain] = last * stage.steps
    tasks = sum(_task_seconds(run, data, stage.encoder, name, profile) for name in run.tuned_tasks)
    tasks += _joint_seconds(run, data, stage.encoder, profile) if run.finetune.joint else 0.0
    found = {
        "seconds_per_step": last,
        "start_seconds": start_seconds(),
        "pretrain_seconds": sum(stages.values()) * run.members,
        "finetune_seconds": tasks * run.members * run.finetune.ensemble * count_rounds(run.evaluation.task_points),
    }
    return {
        **found,
        "stages": stages,
        "seconds": sum(found[f"{part}_seconds"] for part in ("start", "pretrain", "finetune")),
    }


@cache
def start_seconds() -> float:
    """Until a process like a run's has read its libraries: measured once, by one that does nothing else."""
    before = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import paribus.training.pretrain, paribus.training.finetune"], check=True)
    return time.perf_counter() - before


def _task_seconds(run: Run, data: Data, encoder: Network, name: str, profile: Profile) -> float:
    run = run.tuned_for(name)
    settings, task_type = run.finetune, run.task_type(name)
    train = run.tasks[name].examples(run.cache)["train"]
    rows = train[: settings.batch_size * (WARM + STEPS)]
    encoded = task_type.encode(rows, data.tokenizer, data.vocabulary, settings)
    learner, steps = finetuner(run, read_with(run, encoder), encoded, task_type, 0)
    count = len(train) * len(encoded.length_N) // len(rows)
    total = -(-count // settings.batch_size) * settings.epochs
    return _measure(learner, steps, profile) * total * len(settings.seeds)


def _joint_seconds(run: Run, data: Data, encoder: Network, profile: Profile) -> float:
    encoded = {name: encode_training(run, data, name) for name in joint_tasks(run)}
    learner, steps = joint_finetuner(Base(run, read_with(run, encoder), None), encoded, 0)
    return _measure(learner, steps, profile) * steps.total * len(run.finetune.seeds)


def _measure(learner: pl.LightningModule, steps: Steps, profile: Profile) -> float:
    clock = _Clock()
    few = min(steps.total, WARM + STEPS)
    trainer(profile, few, [clock]).fit(learner, StepData(steps, 0, profile.workers))
    return clock.seconds()
