"""Several tasks on one encoder (MT-DNN, arXiv 1901.11504, section 3): one training for each fine-tuning seed.

Its weights are kept in the run's folder until every task is done, so that an interrupted run does not repeat it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from paribus.core.checksums import read_sealed
from paribus.core.files import replacing, write_sealed
from paribus.core.processes import patient
from paribus.core.settings import Profile
from paribus.training.callbacks import LAST, Bar, LastCheckpoint, TaskCurve, saved_steps
from paribus.training.joint.steps import JointSteps
from paribus.training.learner import Finetuning
from paribus.training.steps import StepData
from paribus.training.trainer import Setup, trainer

FOLDER = "joint"  # in a run's folder: the weights of each fine-tuning seed
ABOUT = f"{FOLDER}.json"  # what it trained


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
    tensors = {f"encoder.{key}": tensor for key, tensor in learner.encoder.named_parameters()}
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
