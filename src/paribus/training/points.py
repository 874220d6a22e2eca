"""Checkpoints during pre-training, from which the tasks are fine-tuned as at its end."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytorch_lightning as pl

from paribus.core.checksums import read_sealed
from paribus.core.errors import UserError
from paribus.core.files import write_sealed
from paribus.data.tokens.prepare import Data
from paribus.models import checkpoint
from paribus.training.callbacks import StepCallback, evaluation_steps
from paribus.training.finetune import finetune
from paribus.training.finetuner import Base, base_of

if TYPE_CHECKING:
    from paribus.training.learner import Learner
    from paribus.training.profile import ResolvedProfile
    from paribus.training.stage import Stage

FOLDER = "points"  # in a run's folder, one folder for each number of steps
ABOUT = "point.json"


class Snapshots(StepCallback):
    """Calls `save(step, tokens)` at evenly spaced steps, or after the steps that reach these numbers of tokens."""

    def __init__(self, points: int | Sequence[int], total: int, save: Callable[[int, int], None]) -> None:
        self.tokens = () if isinstance(points, int) else tuple(points)
        self.at = evaluation_steps(points, total) if isinstance(points, int) else set()
        self.total, self.save = total, save

    def after_step(self, trainer: pl.Trainer, module: Learner) -> None:
        step, tokens = trainer.global_step, int(module.tokens_seen)
        before = tokens - module.last["counts"]["input_tokens"]
        if step < self.total and (step in self.at or any(before < asked <= tokens for asked in self.tokens)):
            self.save(step, tokens)


def count_rounds(points: int | Sequence[int]) -> int:
    """How often the tasks are fine-tuned, the end included."""
    return max(1, points) if isinstance(points, int) else len(points) + 1


def make_snapshots(stage: Stage) -> list[Snapshots]:
    """The callback that saves the stage's weights during pre-training; only for the run itself, and if requested."""

    def save(step: int, tokens: int) -> None:
        place = stage.folder / FOLDER / str(step)
        checkpoint.save(stage.encoder, stage.head, place / "model", stage.pair_head, stage.pooler)
        write_sealed(place / ABOUT, {"step": step, "tokens": tokens})

    points = stage.run.evaluation.task_points
    return [Snapshots(points, stage.steps, save)] if points and not stage.run.stage else []


def tune_points(base: Base, data: Data, profile: ResolvedProfile, folder: Path) -> list[dict[str, Any]]:
    """[{"step", "tokens", "task_runs": [{task, seed, metrics}], "finetune_seconds"}] of the points during pre-training,
    in order.

    Each is fine-tuned like the end, with the same seeds. Its weights are then removed, unless `finetune.keep` is set.
    """
    places = sorted((folder / FOLDER).glob(f"*/{ABOUT}"), key=lambda path: int(path.parent.name))
    return [tune_point(base, data, profile, path) for path in places]


def tune_point(base: Base, data: Data, profile: ResolvedProfile, path: Path) -> dict[str, Any]:
    """Fine-tune the tasks from the checkpoint beside `path`, which then holds their scores. Raises UserError if it is
    damaged.
    """
    if (about := read_sealed(path)) is None:
        raise UserError(f"{path} is damaged", f"remove {path.parent}: the run then lacks this point, or train it again")
    if "task_runs" not in about:
        encoder, weights = copy.deepcopy(base.encoder), path.parent / "model"
        checkpoint.load(encoder, weights)
        memory = base.memory
        if memory is not None:  # rehearsed with the point's own head on tokens; what is forgotten is not measured
            head = copy.deepcopy(memory.head, {id(memory.encoder): encoder})
            checkpoint.load_head(encoder, head, weights)
            memory = replace(memory, encoder=encoder, head=head, before={})
        tuned = finetune([base_of(base.run, encoder, weights, memory)], data, profile, path.parent)
        about |= {key: tuned[key] for key in ("task_runs", "finetune_seconds")}
        write_sealed(path, about)
    if not base.run.finetune.keep:
        for other in path.parent.iterdir():
            if other != path:
                shutil.rmtree(other) if other.is_dir() else other.unlink()
    return about
