"""Lightning's Trainer on this machine, and its execution profile, which affects only speed."""

from __future__ import annotations

import logging
import signal
import threading
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytorch_lightning as pl
import torch
from pytorch_lightning.loggers import Logger
from pytorch_lightning.plugins import TorchCheckpointIO
from pytorch_lightning.profilers import AdvancedProfiler, Profiler, PyTorchProfiler, SimpleProfiler

from paribus.core.errors import UserError
from paribus.core.processes import SIGNALS
from paribus.runs.wandb_tracker import Tracked
from paribus.training.distributed import RankGroup, trainer_settings
from paribus.training.profile import ResolvedProfile

PROFILERS: dict[str, type[Profiler]] = {
    "simple": SimpleProfiler,
    "advanced": AdvancedProfiler,
    "pytorch": PyTorchProfiler,
}


class Setup(NamedTuple):
    """Where fine-tunings run: on which profile, in which run's folder, and where they report."""

    profile: ResolvedProfile
    folder: Path
    tracked: Tracked | None


def trainer(
    profile: ResolvedProfile,
    steps: int,
    callbacks: Sequence[pl.Callback],
    tracked: Tracked | None = None,
    group: RankGroup | None = None,
    profiler: Profiler | None = None,
) -> pl.Trainer:
    """A quiet Trainer for `steps` optimizer steps in all, of this process alone or of a group.

    It has these callbacks alone: those that other packages register with Lightning would change a run without a trace
    in its config.
    """
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    logging.getLogger("lightning.fabric").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="pytorch_lightning")
    warnings.filterwarnings("ignore", module="lightning_fabric")
    for message in ("Sparse CSR tensor support is in beta", "Sparse invariant checks"):  # of static word vectors
        warnings.filterwarnings("ignore", message=message)
    settings = trainer_settings(group or RankGroup(), profile.strategy)
    ours = [*callbacks, KeepSignals()]
    made = pl.Trainer(
        accelerator=profile.accelerator,
        precision=profile.precision,  # type: ignore[arg-type]
        max_steps=steps,
        max_epochs=-1,
        logger=False if tracked is None else ToTracked(tracked),
        callbacks=list(ours),  # a copy: Lightning adds to the list
        profiler=profiler,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
        limit_val_batches=0,
        num_sanity_val_steps=0,
        **{**settings, "plugins": [*settings["plugins"], Checkpoints()]},
    )
    allowed, state = {id(one) for one in ours}, vars(made)
    state["callbacks"] = [
        one for one in state["callbacks"] if id(one) in allowed or type(one).__module__.partition(".")[0] == pl.__name__
    ]
    return made


class KeepSignals(pl.Callback):
    """Keeps this process's signal handlers (`core.processes`): with Lightning's own, SIGTERM would end a run without a
    checkpoint and with status 0.
    """

    def __init__(self) -> None:
        self.handlers = {number: signal.getsignal(number) for number in SIGNALS}

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Lightning has put its handlers in by now; after training it puts ours back itself."""
        if threading.current_thread() is threading.main_thread():
            for number, handler in self.handlers.items():
                if handler is not None and signal.getsignal(number) is not handler:
                    signal.signal(number, handler)


class Checkpoints(TorchCheckpointIO):
    """Writes checkpoints straight to their place; Lightning passes them through memory and the temporary folder."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: object = None) -> None:
        torch.save(checkpoint, path)


def build_profiler(name: str | None, folder: Path) -> Profiler | None:
    """Lightning's profiler, which writes `fit-profile.txt` into `folder`. Raises UserError for an unknown name."""
    if name is None:
        return None
    if name not in PROFILERS:
        raise UserError(f"profile.profiler={name} is unknown", f"use null, {', '.join(PROFILERS)}")
    return PROFILERS[name](dirpath=folder, filename="profile")


class ToTracked(Logger):
    """Lightning's side of a tracked run."""

    def __init__(self, tracked: Tracked) -> None:
        super().__init__()
        self.tracked = tracked

    @property
    def name(self) -> str:
        return self.tracked.about.name

    @property
    def version(self) -> str:
        return self.tracked.about.id

    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        self.tracked.log(metrics, step)

    def log_hyperparams(self, *parts: object, **named: object) -> None:
        """The config is there from the start."""
