"""The devices and the memory that a process may use, and how it is stopped."""

from __future__ import annotations

import ctypes
import gc
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt(3)
RARELY = 100_000  # objects made between two collections while modules are imported
OFTEN = gc.get_threshold()


def use_huge_pages() -> None:
    """Let torch allocate large arrays in huge pages, since it makes them anew in each step; before torch is used."""
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")


def collect_rarely() -> None:
    """Let imports make their objects without a search for garbage, which would take a fifth of the time."""
    gc.set_threshold(RARELY)


def collect_often() -> None:
    """Collect garbage as usual again, and never look through what the process imported before its first run."""
    if gc.get_freeze_count() == 0:
        gc.freeze()
    gc.set_threshold(*OFTEN)


def ranks_of(given: int | None, accelerator: str) -> int:
    """The number of processes that train one run; None means one per GPU, or two without GPUs."""
    if given is not None:
        return given
    devices = [] if accelerator == "cpu" else gpus()
    return len(devices) or 2


def gpus() -> list[str]:
    """The CUDA devices that this process may use, found without loading CUDA."""
    if (visible := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [device for device in visible.split(",") if device.strip() and device.strip() != "-1"]
    if shutil.which("nvidia-smi") is None:
        return []
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [str(at) for at, _ in enumerate(line for line in listed.stdout.splitlines() if line.startswith("GPU "))]


def keep_freed_memory() -> None:
    """Let glibc keep what a training step frees; with another C library nothing happens.

    By default it gives large arrays back to the system, and every step pays again for all of their pages.
    """
    with suppress(OSError, AttributeError):
        set_option = ctypes.CDLL("libc.so.6").mallopt
        set_option(_MMAP_THRESHOLD, 32 << 20)  # the largest that glibc takes
        set_option(_TRIM_THRESHOLD, 1 << 30)


@contextmanager
def terminable() -> Iterator[None]:
    """Turn SIGTERM into KeyboardInterrupt during the block, if this is the main thread, which alone handles signals."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
