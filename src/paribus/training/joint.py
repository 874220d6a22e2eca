"""Several tasks on one encoder (MT-DNN, arXiv 1901.11504, section 3): one training for each fine-tuning seed.

In a task mixture (`tasks.mixtures`) one text-to-text head answers every task, so its batches mix tasks and name none.
Here every task has a head of its own, and every batch holds rows of one task and names it. Both follow one law:
`Sampling.counts`.

The weights are kept in the run's folder until every task is done, so that an interrupted run does not repeat it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from paribus.core.checksums import digest, read_sealed
from paribus.core.files import replacing, write_sealed
from paribus.core.processes import patient
from paribus.core.settings import Profile
from paribus.data.sequences import Array, Arrays
from paribus.models.network import named_weights
from paribus.tasks.mixtures import deal
from paribus.tasks.rows import TaskRows, order
from paribus.training.callbacks import LAST, Bar, LastCheckpoint, TaskCurve, saved_steps
from paribus.training.description import Run
from paribus.training.joint_settings import Joint
from paribus.training.learner import Finetuning
from paribus.training.steps import Step, StepData, task_batch
from paribus.training.trainer import Setup, trainer

FOLDER = "joint"  # in a run's folder: the weights of each fine-tuning seed
ABOUT = f"{FOLDER}.json"  # what it trained


@dataclass(frozen=True)
class NamedRows(TaskRows):
    """The rows of a task, whose batches name it as `task`."""

    task: str
    rows: TaskRows

    @cached_property
    def length_N(self) -> Array:  # type: ignore[override]  # a dataclass field in other rows
        """Int64 [N]: tokens of each row."""
        return self.rows.length_N

    def batch(self, row_B: Array, multiple: int) -> Arrays:
        return {**self.rows.batch(row_B, multiple), "task": self.task}

    def split(self, row_B: Array) -> list[Array]:
        return self.rows.split(row_B)


@dataclass(frozen=True)
class JointRows(TaskRows):
    """The rows of several tasks, one task after the other. A step over rows of several tasks is `split` into batches
    of one task each, so that every loss has its own head and denominator.
    """

    tasks: Sequence[NamedRows]

    @cached_property
    def length_N(self) -> Array:  # type: ignore[override]  # a dataclass field in other rows
        """Int64 [N]: tokens of each row of all tasks."""
        return np.concatenate([rows.length_N for rows in self.tasks])

    def first(self, place: int) -> int:
        """The number of the first row of the task at that place."""
        return int(self._first_K[place])

    @cached_property
    def _first_K(self) -> Array:
        return np.cumsum([0, *(len(rows.length_N) for rows in self.tasks)])

    def batch(self, row_B: Array, multiple: int) -> Arrays:
        """The batch of the one task that the rows belong to."""
        place = int(np.searchsorted(self._first_K, row_B[0], side="right")) - 1
        return self.tasks[place].batch(row_B - self._first_K[place], multiple)

    def split(self, row_B: Array) -> list[Array]:
        batches: list[Array] = []
        for rows, first, end in zip(self.tasks, self._first_K[:-1], self._first_K[1:], strict=True):
            task_B = row_B[(row_B >= first) & (row_B < end)]
            batches += [part + first for part in rows.split(task_B - first)] if len(task_B) else []
        return batches


class JointSteps:
    """The steps over several tasks; step s is a pure function of s, the rows and the seed.

    A pass has as many turns as the tasks have batches (`one_task`) or rows (`all_tasks`), dealt out by the sampling.
    Every row of a task is read once before any is read again, in a new order each time. With `most`, only so many
    random rows are read each time.
    """

    def __init__(
        self, tasks: Sequence[NamedRows], joint: Joint, batch_size: int, seed: int, most: int | None = None
    ) -> None:
        self.tasks, self.rows, self.seed = tasks, JointRows(tasks), seed
        self.batch_size, self.alone = batch_size, joint.step == "one_task"
        self.unit = batch_size if self.alone else 1  # rows of a turn
        read = [min(len(rows.length_N), most or len(rows.length_N)) for rows in tasks]
        self.sizes = [-(-rows // self.unit) for rows in read]
        self.counts = joint.sampling.counts(self.sizes)
        self.per_epoch = sum(self.counts) if self.alone else -(-sum(self.counts) // batch_size)
        self.total = self.per_epoch * joint.epochs
        self._passes: dict[int, list[Array]] = {}

    def __getitem__(self, step: int) -> Step:
        epoch, at = divmod(step, self.per_epoch)
        if epoch not in self._passes:
            turns = [iter(self._turns(place, epoch)) for place in range(len(self.tasks))]
            dealt = [next(turns[place]) for place in deal(self.counts, self.seed, epoch)]
            if not self.alone:  # batches of rows of all tasks, of like length
                row_N = np.concatenate(dealt)
                batches = order(self.rows.length_N[row_N], self.batch_size, self.seed, epoch, shuffle=True)
                dealt = [row_N[batch] for batch in batches]
            self._passes = {epoch: dealt}  # the rows of each step, numbered over all tasks
        return [task_batch(self.rows, rows) for rows in self.rows.split(self._passes[epoch][at])]

    def describe(self) -> dict[str, dict[str, float]]:
        """{task: {"rows", "turns", "share"}} of the whole training; a turn is a batch or a row."""
        epochs = self.total // self.per_epoch
        return {
            rows.task: {"rows": len(rows.length_N), "turns": count * epochs, "share": count / sum(self.counts)}
            for rows, count in zip(self.tasks, self.counts, strict=True)
        }

    def _turns(self, place: int, epoch: int) -> list[Array]:
        """The turns of a task in a pass, which continue those of the pass before."""
        rows, size, count = self.tasks[place], self.sizes[place], self.counts[place]
        seed = int(digest([self.seed, rows.task], 15), 16)
        first = epoch * count
        turns: list[Array] = []
        for reading in range(first // size, -(-(first + count) // size)):
            all_turns = order(rows.length_N, self.unit, seed, reading, shuffle=True)[:size]
            turns += all_turns[max(0, first - reading * size) : first + count - reading * size]
        return [turn + self.rows.first(place) for turn in turns]


def joint_steps(run: Run, encoded: Mapping[str, TaskRows], seed: int) -> JointSteps:
    """The steps over the training rows of all tasks, with the seed of a fine-tuning."""
    tasks = [NamedRows(name, rows) for name, rows in sorted(encoded.items())]
    joint_seed = int(digest([run.root_seed, "joint", seed], 15), 16)
    settings = run.finetune
    return JointSteps(tasks, settings.joint, settings.batch_size, joint_seed, settings.max_examples)


class Start(NamedTuple):
    """The weights that a task starts from, by name; a task that was not among those trained together has no head."""

    encoder: Mapping[str, Tensor]
    head: Mapping[str, Tensor] | None


def train_joint(learner: Finetuning, steps: JointSteps, setup: Setup, settings: Profile, seed: int) -> None:
    """Train on all tasks, from the last checkpoint on, and keep the weights.

    `settings` say how often a checkpoint is written. Raises Stopped if a signal came in between.
    """
    name, path = f"joint/seed{seed}", joint_path(setup.folder, seed)
    place = path.with_suffix("")
    place.mkdir(parents=True, exist_ok=True)
    done = saved_steps(place)
    callbacks = [
        Bar(name.replace("/", " "), steps.total),
        TaskCurve(name, steps.total),
        LastCheckpoint(place, settings.checkpoint_seconds, settings.checkpoint_steps),
    ]
    with patient():
        trainer(setup.profile, steps.total, callbacks, setup.tracked).fit(
            learner,
            StepData(steps, done, setup.profile.workers),
            ckpt_path=place / LAST if done else None,
            weights_only=True,
        )
    tensors = {f"encoder.{key}": tensor for key, tensor in named_weights(learner.encoder).items()}
    for task, head in learner.objective.heads.items():
        tensors |= {f"head.{task}.{key}": tensor for key, tensor in head.state_dict().items()}
    with replacing(path) as work:
        save_file({key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}, work)
    (place / LAST).unlink(missing_ok=True)
    write_sealed(path.parent.parent / ABOUT, {"steps": steps.total, "tasks": steps.describe()})


def describe_joint(folder: Path) -> dict[str, Any]:
    """{"joint": {"steps", "tasks": {task: {"rows", "turns", "share"}}}} of one seed, if a run has trained that."""
    joint = read_sealed(folder / ABOUT)
    return {} if joint is None else {"joint": joint}


def joint_path(folder: Path, seed: int) -> Path:
    """Where a run keeps the joint training of a fine-tuning seed."""
    return folder / FOLDER / f"seed{seed}.safetensors"


def is_whole(path: Path) -> bool:
    """Whether the weights of a joint training exist and can be read."""
    try:
        with safe_open(path, framework="pt"):
            return True
    except (OSError, SafetensorError):
        return False


def read_start(path: Path, task: str) -> Start:
    """The weights that a task starts from."""
    with safe_open(path, framework="pt") as file:
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (no mapping)
    return Start(_below("encoder.", tensors), _below(f"head.{task}.", tensors) or None)


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {key.removeprefix(prefix): tensor for key, tensor in tensors.items() if key.startswith(prefix)}
