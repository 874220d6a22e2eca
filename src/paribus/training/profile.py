"""The execution profile on this machine: how fast, never what."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import torch

from paribus.core.errors import UserError
from paribus.core.processes import THREADS, collect_often, keep_freed_memory, ranks_of
from paribus.core.settings import Profile

STRATEGIES = ("ddp", "fsdp")
PRECISIONS = {"bf16-mixed": torch.bfloat16, "32-true": torch.float32}


@dataclass(frozen=True)
class ResolvedProfile:
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
        if self.accelerator == "gpu":
            name = torch.cuda.get_device_name()
        else:
            name = _cpu_field("model name") or platform.processor() or platform.machine()
        return {**asdict(self), "device": name}


def resolve(asked: Profile) -> ResolvedProfile:
    """Choose what is `auto`, and set up the threads and the memory of this process.

    Raises UserError for a precision, a strategy or an accelerator that is not here.
    """
    accelerator = _choose_accelerator(asked.accelerator)
    if accelerator == "gpu":
        if not torch.cuda.is_available():
            raise UserError("profile.accelerator=gpu but no CUDA device is visible", "use profile.accelerator=cpu")
        # CUDA kernels that add in one order, so that a run has the same bits each time. An operation that has no such
        # kernel raises RuntimeError.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read by cuBLAS at the first product
        torch.use_deterministic_algorithms(True)
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    precision = choose_precision(asked.precision, accelerator)
    if precision not in PRECISIONS:
        raise UserError(f"profile.precision={precision} is unknown", f"use auto, {', '.join(PRECISIONS)}")
    ranks = ranks_of(asked.ranks, asked.accelerator)
    if asked.strategy not in STRATEGIES:
        raise UserError(f"profile.strategy={asked.strategy} is unknown", f"use {' or '.join(STRATEGIES)}")
    given = os.environ.get(THREADS, "")
    here = int(given) if given.isdigit() and int(given) else max(1, len(os.sched_getaffinity(0)) // max(1, ranks))
    threads = asked.threads or here
    torch.set_num_threads(threads)
    keep_freed_memory()
    collect_often()
    return ResolvedProfile(
        accelerator, precision, threads, asked.workers, asked.microbatch, asked.compile, ranks, asked.strategy
    )


def choose_precision(asked: str, accelerator: str) -> str:
    """The precision that a run here trains in: as asked for, or the fastest that the accelerator has units for."""
    if asked != "auto":
        return asked
    if _choose_accelerator(accelerator) == "gpu":
        return "bf16-mixed" if torch.cuda.is_bf16_supported() else "32-true"
    flags = {*_cpu_field("flags").split(), *_cpu_field("Features").split()}
    # without the processor's bf16 units, from which the environment can keep PyTorch and oneDNN, bf16 is slow
    widest = os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper()
    masked = bool(widest) and not any(unit in widest for unit in ("ALL", "DEFAULT", "BF16", "FP16", "AMX"))
    masked = masked or os.environ.get("ATEN_CPU_CAPABILITY", "").lower() in ("default", "avx2")
    return "bf16-mixed" if {"avx512_bf16", "amx_bf16", "bf16"} & flags and not masked else "32-true"


def _choose_accelerator(asked: str) -> str:
    return asked if asked != "auto" else "gpu" if torch.cuda.is_available() else "cpu"


def _cpu_field(name: str) -> str:
    """A field of the first processor that Linux lists; empty on other systems."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), "")
    except OSError:
        return ""


def matrix_peak(profile: ResolvedProfile) -> float:
    """Floating-point operations a second of a bare matrix product here, measured: the yardstick of `mfu`."""
    size = 1024
    left = torch.randn(size, size, device=profile.device, dtype=PRECISIONS[profile.precision])
    best = float("inf")
    for _ in range(6):
        start = time.perf_counter()
        product = left @ left
        if profile.device == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    del product
    return 2.0 * size**3 / best


process_peak = cache(matrix_peak)  # measured once by a process for each of its profiles
