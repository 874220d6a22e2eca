"""Settings for training several tasks on one encoder before each is fine-tuned alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.tasks.mixtures import Sampling, choose_tasks

STEPS = ("one_task", "all_tasks")


@dataclass(frozen=True)
class Joint:
    """All tasks on one encoder with a head each (MT-DNN, arXiv 1901.11504, section 3).

    Args:
        sampling: how often each task is read, by the number of its batches.
        tasks: names of the tasks to train together; None for all tasks of the run.
        epochs: passes, each of as many batches as all tasks have.
        lr: the learning rate; None: that of the fine-tuning.
        step: `one_task`: a step is a batch of one task; `all_tasks`: it has as many rows, of all tasks, and the mean
            losses of the tasks are added.

    Raises UserError for an unknown `step`, a rate that is not positive, and fewer than one epoch.
    """

    sampling: Sampling
    tasks: Sequence[str] | None = None
    epochs: int = field(default=3, metadata=within(0, 10**6))
    lr: float | None = None
    step: str = "one_task"
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.step not in STEPS:
            raise UserError(f"finetune.joint.step={self.step} is unknown", f"use {' or '.join(STEPS)}")
        if self.epochs < 1:
            raise UserError(
                f"finetune.joint.epochs={self.epochs} is out of range", "give at least 1, or set finetune/joint=none"
            )
        if self.lr is not None and self.lr <= 0:
            raise UserError(f"finetune.joint.lr={self.lr} is not positive", "give a rate, or null")

    def choose(self, known: Sequence[str]) -> list[str]:
        """The tasks that are trained together, of those of the run, sorted.

        Raises UserError if one of them is unknown, and if there are fewer than two.
        """
        chosen = choose_tasks(self.tasks, known, "finetune.joint")
        if len(chosen) < 2:
            names = ", ".join(chosen) or "no task"
            raise UserError(f"finetune/joint trains several tasks together, but has {names}", "give task=[one,other]")
        return chosen
