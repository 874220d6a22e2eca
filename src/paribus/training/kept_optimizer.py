"""A stage that resumes with the moments of the stage before instead of a fresh optimizer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytorch_lightning as pl
import torch
from torch import Tensor

from paribus.core.files import replacing
from paribus.training.callbacks import StepCallback
from paribus.training.learner import change_tensors
from paribus.training.stage import OPTIMIZER, Stage

if TYPE_CHECKING:
    from paribus.training.learner import Learner


class Keep(StepCallback):
    """Writes the optimizer's state after the last of `total` steps."""

    def __init__(self, folder: Path, total: int) -> None:
        self.path, self.total = folder / OPTIMIZER, total

    def after_step(self, trainer: pl.Trainer, module: Learner) -> None:
        if trainer.global_step == self.total and trainer.is_global_zero:
            state = trainer.optimizers[0].state
            kept = {name: change_tensors(state[p], Tensor.cpu) for name, p in module.named_parameters() if p in state}
            with replacing(self.path) as work:
                torch.save(kept, work)


class Take(pl.Callback):
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


def callbacks_of(stage: Stage) -> list[pl.Callback]:
    """The callbacks that keep the stage's optimizer for the next one and load the previous stage's, if requested."""
    callbacks: list[pl.Callback] = []
    if stage.hands_on:
        callbacks.append(Keep(stage.folder, stage.steps))
    if stage.run.trainer.keep_optimizer and stage.before is not None:
        callbacks.append(Take(stage.before))
    return callbacks
