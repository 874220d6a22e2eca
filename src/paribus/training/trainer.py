"""Lightning's Trainer on this machine, and its execution profile, which affects only speed."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.loggers import Logger
from pytorch_lightning.plugins import TorchCheckpointIO
from pytorch_lightning.profilers import AdvancedProfiler, Profiler, PyTorchProfiler, SimpleProfiler

from paribus.core.errors import UserError
from paribus.core.processes import collect_often, keep_freed_memory, ranks_of
from paribus.core.settings import Profile as Settings
from paribus.runs.tracker import Tracked
from paribus.training.distributed import Group, trainer_settings

PROFILERS: dict[str, type[Profiler]] = {
    "simple": SimpleProfiler,
    "advanced": AdvancedProfiler,
    "pytorch": PyTorchProfiler,
}
STRATEGIES = ("ddp", "fsdp")
PRECISIONS = {"bf16-mixed": torch.bfloat16, "32-true": torch.float32}


@dataclass(frozen=True)
class Profile:
    """What a run really used, for its record."""

    accelerator: str
    precision: str
    threads: int
    workers: int
    microbatch: int | None
    compile: bool
    ranks: int = 1
    strategy: str = "ddp"

    @property
    def sharded(self) -> bool:
        """Whether the weights lie in shards on several devices."""
        return self.strategy == "fsdp" and self.ranks > 1

    @property
    def device(self) -> str:
        """The kind of device that one process computes on, as torch calls it."""
        return "cuda" if self.accelerator == "gpu" else "cpu"

    def record(self) -> dict[str, Any]:
        """As plain data, with the processor's name."""
        name = torch.cuda.get_device_name() if self.accelerator == "gpu" else _processor()
        return {**asdict(self), "device": name}


def resolve(asked: Settings) -> Profile:
    """Choose what is `auto`, and set up the threads and the memory of this process.

    Raises UserError for a precision, a strategy or an accelerator that is not here.
    """
    accelerator = asked.accelerator if asked.accelerator != "auto" else "gpu" if torch.cuda.is_available() else "cpu"
    if accelerator == "gpu" and not torch.cuda.is_available():
        raise UserError("profile.accelerator=gpu but no CUDA device is visible", "use profile.accelerator=cpu")
    precision = asked.precision if asked.precision != "auto" else _best_precision(accelerator)
    if precision not in PRECISIONS:
        raise UserError(f"profile.precision={precision} is unknown", f"use auto, {', '.join(PRECISIONS)}")
    ranks = ranks_of(asked.ranks, asked.accelerator)
    if asked.strategy not in STRATEGIES:
        raise UserError(f"profile.strategy={asked.strategy} is unknown", f"use {' or '.join(STRATEGIES)}")
    threads = asked.threads or max(1, len(os.sched_getaffinity(0)) // max(1, ranks))
    torch.set_num_threads(threads)
    keep_freed_memory()
    collect_often()
    own = (asked.workers, asked.microbatch, asked.compile)
    return Profile(accelerator, precision, threads, *own, ranks, asked.strategy)


def _best_precision(accelerator: str) -> str:
    if accelerator == "gpu":
        return "bf16-mixed" if torch.cuda.is_bf16_supported() else "32-true"
    flags = {*_cpu_field("flags").split(), *_cpu_field("Features").split()}
    return "bf16-mixed" if {"avx512_bf16", "amx_bf16", "bf16"} & flags else "32-true"


def _processor() -> str:
    import platform

    return _cpu_field("model name") or platform.processor() or platform.machine()


def _cpu_field(name: str) -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), "")
    except OSError:
        return ""


def matrix_peak(profile: Profile, size: int = 1024, rounds: int = 6) -> float:
    """Floating-point operations a second of a bare matrix product here, measured: the yardstick of `mfu`."""
    import time

    left = torch.randn(size, size, device=profile.device, dtype=PRECISIONS[profile.precision])
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        product = left @ left
        if profile.device == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    del product
    return 2.0 * size**3 / best


process_peak = cache(matrix_peak)  # measured once by a process for each of its profiles


def trainer(
    profile: Profile,
    steps: int,
    callbacks: Sequence[pl.Callback],
    tracked: Tracked | None = None,
    group: Group | None = None,
    profiler: Profiler | None = None,
) -> pl.Trainer:
    """A quiet Trainer for `steps` optimizer steps in all, of this process alone or of a group."""
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    logging.getLogger("lightning.fabric").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="pytorch_lightning")
    warnings.filterwarnings("ignore", module="lightning_fabric")
    settings = trainer_settings(group or Group(), profile.strategy)
    made = pl.Trainer(
        accelerator=profile.accelerator,
        precision=profile.precision,  # type: ignore[arg-type]
        max_steps=steps,
        max_epochs=-1,
        logger=False if tracked is None else ToTracked(tracked),
        callbacks=list(callbacks),
        profiler=profiler,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
        limit_val_batches=0,
        num_sanity_val_steps=0,
        **{**settings, "plugins": [*settings["plugins"], Checkpoints()]},
    )
    # Lightning would leave on SIGTERM without a checkpoint and with status 0; `core.processes` handles signals
    made._signal_connector.register_signal_handlers = lambda: None  # type: ignore[method-assign]
    return made


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

    def log_hyperparams(self, *parts: Any, **named: Any) -> None:
        """The config is there from the start."""
