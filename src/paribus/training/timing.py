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

import pytorch_lightning as pl

from paribus.core.build import build
from paribus.tasks.types.choice import task_type_of
from paribus.training.budget import data_of
from paribus.training.execution import Profile, resolve
from paribus.training.finetune import finetuner
from paribus.training.fit import trainer
from paribus.training.members import members, turns
from paribus.training.pretrain import learner_of, open_stage
from paribus.training.steps import PretrainingSteps, loader

STEPS = 24  # measured, after the first WARM ones
WARM = 4


class _Clock(pl.Callback):
    """Wall-clock seconds between the ends of steps, loading included."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_train_batch_end(self, *unused: Any) -> None:
        self.ends.append(time.perf_counter())

    def seconds(self) -> float:
        """Median seconds a step, first steps left out; 0 where there were too few."""
        gaps = [after - before for before, after in zip(self.ends[WARM:], self.ends[WARM + 1 :], strict=False)]
        return statistics.median(gaps) if gaps else 0.0


def seconds(cfg: Any) -> dict[str, float]:
    """{"seconds_per_step", "start_seconds", "pretrain_seconds", "finetune_seconds", "seconds"} of one run of the arm,
    nothing kept. What its evaluations take is not in it.
    """
    profile, data = resolve(cfg.profile), data_of(cfg)
    with tempfile.TemporaryDirectory() as folder:
        stage = open_stage(cfg, data, profile, Path(folder))
    per_step = 0.0
    if stage.steps:
        steps = PretrainingSteps(stage.plan, stage.steps, profile.microbatch)
        per_step = _measure(learner_of(stage), steps, profile)
    tasks = sum(_task_seconds(cfg, data, stage.encoder, node, profile) for node in cfg.tasks.values())
    found = {
        "seconds_per_step": per_step,
        "start_seconds": start_seconds(),
        "pretrain_seconds": per_step * stage.steps * members(cfg),
        "finetune_seconds": tasks * members(cfg) * turns(cfg),
    }
    return {**found, "seconds": sum(found[f"{part}_seconds"] for part in ("start", "pretrain", "finetune"))}


@cache
def start_seconds() -> float:
    """Until a process like a run's has read its libraries: measured once, by one that does nothing else."""
    before = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import paribus.training.pretrain, paribus.training.finetune"], check=True)
    return time.perf_counter() - before


def _task_seconds(cfg: Any, data: Any, encoder: Any, node: Any, profile: Profile) -> float:
    task = build(node)
    train = task.examples(Path(cfg.paths.cache).expanduser())["train"]
    rows = train[: cfg.finetune.batch_size * (WARM + STEPS)]
    task_type = task_type_of(task, build(cfg.model))
    encoded = task_type.encode(rows, data.tokenizer, data.vocabulary, cfg.finetune)
    learner, steps = finetuner(cfg, encoder, encoded, task_type, 0)
    count = len(train) * len(encoded.length_N) // len(rows)
    total = -(-count // int(cfg.finetune.batch_size)) * int(cfg.finetune.epochs)
    seeds = len(cfg.finetune.seeds)
    return _measure(learner, steps, profile) * total * seeds


def _measure(learner: pl.LightningModule, steps: Any, profile: Profile) -> float:
    clock = _Clock()
    few = min(steps.total, WARM + STEPS)
    trainer(profile, few, [clock]).fit(learner, loader(steps, 0, profile.workers))
    return clock.seconds()
