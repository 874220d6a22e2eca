"""What a fine-tuning and its answers cost: seconds and bytes as measured, FLOPs as counted (`finetune.costs=true`)."""

from __future__ import annotations

import ctypes
import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from paribus.tasks.rows import FramedRows, GroupedRows, TaskRows

if TYPE_CHECKING:
    from paribus.data.sequences import Array
    from paribus.models.spec import Shape

MEGA, GIGA = 1e6, 1e9


@contextmanager
def measuring(spent: dict[str, float], work: str, device: str) -> Iterator[None]:
    """A context whose seconds, and the most megabytes that it holds beyond what was held before, are put into `spent`
    as `{work}_seconds` and `{work}_megabytes`.

    On a processor, memory is that of the process, as Linux counts it; other systems do not tell.
    """
    before = _begin_peak(device)
    start = time.perf_counter()
    yield
    if device == "cuda":
        torch.cuda.synchronize()
    spent[f"{work}_seconds"] = time.perf_counter() - start
    peak = _read_peak(device)
    if before is not None and peak is not None:
        spent[f"{work}_megabytes"] = max(0.0, peak - before) / MEGA


def _begin_peak(device: str) -> float | None:
    """Bytes that are held now, from which on a new peak is measured; None if the system does not tell."""
    gc.collect()
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        return float(torch.cuda.memory_allocated())
    if device != "cpu" or not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):  # of glibc; else what was freed before is used again, and not counted
        libc.malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    return _read_status("VmRSS")


def _read_peak(device: str) -> float | None:
    return float(torch.cuda.max_memory_allocated()) if device == "cuda" else _read_status("VmHWM")


def _read_status(field: str) -> float | None:
    """Bytes of this process; None without Linux's `/proc`."""
    path = Path("/proc/self/status")
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return next((1024.0 * int(line.split()[1]) for line in lines if line.startswith(field)), None)


def count_tuning_flops(shape: Shape, rows: TaskRows, passes: float) -> float | None:
    """Floating-point operations of a training of all weights on the rows of a task, without heads and padding; None for
    rows that are written.

    The backward pass counts twice. It goes through the last window alone if windows are read in order.
    """
    plain = rows.plain
    if isinstance(plain, GroupedRows):
        length_W = plain.rows.length_N
        learned_W = length_W[plain.first_N[1:] - 1] if plain.in_order else length_W
        shape = shape if plain.in_order else shape.without_memory()
    elif type(plain) is FramedRows:
        length_W = learned_W = plain.length_N
        shape = shape.without_memory()
    else:
        return None
    return passes * (_count_forward(shape, length_W) + 2.0 * _count_forward(shape, learned_W))


def _count_forward(shape: Shape, length_W: Array) -> float:
    lengths, counts = np.unique(length_W, return_counts=True)
    return sum(
        shape.forward_flops(float(length * count), float(length), rows=float(count))
        for length, count in zip(lengths, counts, strict=True)
    )
