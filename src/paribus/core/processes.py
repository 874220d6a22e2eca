"""The devices and memory that a process may use, and how signals stop it."""

from __future__ import annotations

import ctypes
import gc
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from types import FrameType
from typing import Any

from paribus.core.errors import UserError

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt(3)
RARELY = 100_000  # objects made between two collections while modules are imported
OFTEN = gc.get_threshold()
THREADS = "OMP_NUM_THREADS"  # of one process, by convention
RANKS_PER_CORE = 4  # at most
WARNINGS = (signal.SIGUSR1, signal.SIGUSR2)  # of Slurm and of submitit, some time before a job is ended
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, *WARNINGS)
_USUAL = (signal.SIG_DFL, signal.default_int_handler, None)
PATIENCE = 3.0  # seconds that a training step has to end before it is left without a checkpoint
_PARENT_DEATH = 1  # of prctl(2)


def use_huge_pages() -> None:
    """Let torch allocate large arrays in huge pages, since it allocates them again in each step. Call it before using
    torch.
    """
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")


def collect_rarely() -> None:
    """Turn off garbage collection during imports, where it would take a fifth of the time."""
    gc.set_threshold(RARELY)


def collect_often() -> None:
    """Turn garbage collection on again, and exclude everything that was imported before the first run."""
    _freeze()
    gc.set_threshold(*OFTEN)


@cache
def _freeze() -> None:
    """Called once in a process and its forks, because asking whether anything is frozen counts all objects."""
    gc.freeze()


def ranks_of(given: int | None, accelerator: str) -> int:
    """The number of processes that train one run; None means one per GPU, or two without GPUs."""
    if given is not None:
        return given
    devices = [] if accelerator == "cpu" else gpus()
    return len(devices) or 2


def check_ranks(ranks: int, devices: int) -> None:
    """Raises UserError if one run has more processes than `devices`, the GPUs, or than `RANKS_PER_CORE` without one."""
    cores = os.cpu_count() or 1
    if ranks > (devices or RANKS_PER_CORE * cores):
        limit = f"the number of GPUs, {devices}" if devices else f"{RANKS_PER_CORE} for each of {cores} cores"
        raise UserError(f"profile.ranks={ranks} is above {limit}", "lower profile.ranks")


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
    """Let glibc keep the memory that a training step frees; does nothing with another C library.

    By default it returns large arrays to the system, and every step pays for their pages again.
    """
    with suppress(OSError, AttributeError):
        set_option = ctypes.CDLL("libc.so.6").mallopt
        set_option(_MMAP_THRESHOLD, 32 << 20)  # the largest that glibc takes
        set_option(_TRIM_THRESHOLD, 1 << 30)


class Stopped(BaseException):
    """A signal asks the process to end. `status`: its exit status then, as shells give it."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}; run the same command again to resume")
        self.number, self.status = signal.Signals(number), 128 + number


class _Stop:
    """State of this process's signal handler: who installed it, the signal that waits for a step, and until when."""

    owner: int = 0
    waits: bool = False
    number: int | None = None
    until: float = 0.0
    again: threading.Timer | None = None  # sends the signal once more, to a step that takes too long


def _handle(number: int, frame: FrameType | None) -> None:
    if _Stop.owner != os.getpid():  # a worker of a data loader, which ends with its run
        return
    if not _Stop.waits or (_Stop.number is not None and time.monotonic() >= _Stop.until):
        raise Stopped(number)
    if _Stop.number is None:
        _Stop.number, _Stop.until = number, time.monotonic() + PATIENCE
        _Stop.again = threading.Timer(PATIENCE + 0.1, os.kill, (os.getpid(), number))
        _Stop.again.daemon = True
        _Stop.again.start()


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise Stopped in the block on `SIGNALS`, inside `patient` only after the step.

    A signal that other code handles or ignores is left alone. A warning also stops the block; then their handler is
    called, so that submitit can put the job back into the queue. Only the main thread handles signals; in another
    nothing changes.
    """
    if _Stop.owner == os.getpid() or threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    heard = [
        number
        for number, handler in handlers.items()
        if handler in _USUAL or (number in WARNINGS and callable(handler))
    ]
    before = {number: signal.signal(number, _handle) for number in heard}
    _Stop.owner, _Stop.waits, _Stop.number = os.getpid(), False, None
    try:
        yield
    except Stopped as stopped:
        _give_back(before)
        if callable(theirs := handlers[stopped.number]) and theirs not in _USUAL:
            theirs(stopped.number, None)
        raise
    finally:
        _give_back(before)


def _give_back(handlers: Mapping[signal.Signals, Any]) -> None:
    _Stop.owner = 0
    if _Stop.again is not None:  # whoever called has the handlers again, and would get a signal that nobody sent
        _Stop.again.cancel()
        _Stop.again = None
    for number, handler in handlers.items():
        signal.signal(number, handler)


@contextmanager
def patient() -> Iterator[None]:
    """Let the block ask `asked_to_stop` after each of its steps; a step that takes too long is left."""
    _Stop.waits, _Stop.number = True, None
    try:
        yield
    finally:
        _Stop.waits, _Stop.number = False, None


def asked_to_stop() -> int | None:
    """The signal that asks the process to end, if any. The caller then saves its state and raises Stopped."""
    if _Stop.number is not None:
        _Stop.until = float("inf")
    return _Stop.number


def die_with_parent(parent: int) -> None:
    """Let the kernel send SIGTERM to this process if its parent dies; send it now if `parent` has died already.

    Does nothing on systems other than Linux.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PARENT_DEATH, int(signal.SIGTERM))
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)
