"""A pool of slots: every run is a process of its own, on its own cores or GPU. A free slot takes the next at once."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

from paribus.core.errors import UserError
from paribus.core.processes import gpus, terminable

POLL = 0.05  # seconds between looks at the processes
GRACE = 30.0  # seconds that a stopped run has to end by itself
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class Slot(NamedTuple):
    """A share of the machine: `cores` for its threads, `device` the CUDA devices that its runs see (None: as it is)."""

    cores: tuple[int, ...]
    device: str | None = None

    def environment(self) -> dict[str, str]:
        """What a process in this slot gets beside this process' own environment."""
        own = dict.fromkeys(_THREADS, str(len(self.cores)))
        return own if self.device is None else {**own, "CUDA_VISIBLE_DEVICES": self.device}


class Work(NamedTuple):
    """One process: `label` for the reader, `command`, and `log`, to which its output is appended.

    `config`: the whole config of the run that the command is, for a launcher that hands it to another machine.
    """

    label: str
    command: tuple[str, ...]
    log: Path
    config: Any = None


class Ended(NamedTuple):
    """How a process ended. `status`: its exit status, negative for a signal."""

    work: Work
    status: int
    seconds: float


@dataclass
class _Running:
    work: Work
    process: subprocess.Popen[bytes]
    log: IO[bytes]
    start: float


def machine_slots(runs: int, wanted: int | None = None, ranks: int = 1) -> list[Slot]:
    """Divide cores and GPUs among slots.

    Args:
        runs: how many runs the whole sweep has; there are never more slots.
        wanted: a number instead of one slot for each GPU (or for as many as a run has processes), or without GPUs one
            for each core.
        ranks: processes that a run trains on.

    Raises:
        UserError: for a number below 1, and for more processes than there are GPUs.
    """
    if wanted is not None and wanted < 1:
        raise UserError(f"slots={wanted} is below 1", "give a number of runs side by side, or auto")
    cores, devices = sorted(os.sched_getaffinity(0)), _grouped(gpus(), ranks)
    count = max(1, min(wanted or len(devices) or max(1, len(cores) // ranks), runs))
    return [
        Slot(_share(cores, at, count), devices[at % len(devices)] if devices else None)
        for at in range(count)
    ]  # fmt: skip


def _grouped(devices: Sequence[str], ranks: int) -> list[str]:
    """The GPUs of each slot, as CUDA_VISIBLE_DEVICES has them."""
    if devices and len(devices) < ranks:
        raise UserError(f"profile.ranks={ranks}, but there are {len(devices)} GPUs", "give at most as many")
    return [",".join(devices[at : at + ranks]) for at in range(0, len(devices) - ranks + 1, ranks)]


def _share(cores: Sequence[int], at: int, count: int) -> tuple[int, ...]:
    """The cores of one slot: equally many for each; with more slots than cores they take turns."""
    size = max(1, len(cores) // count)
    return tuple(cores[(at * size + offset) % len(cores)] for offset in range(size))


def run_all(
    queue: Sequence[Work],
    slots: Sequence[Slot],
    *,
    started: Callable[[Work, int], None] = lambda work, slot: None,
    ended: Callable[[Ended], None] = lambda end: None,
    idle: Callable[[], object] = lambda: None,
    environment: Mapping[str, str] | None = None,
) -> list[Ended]:
    """Run every process, as many side by side as there are slots, and go on when one fails.

    Args:
        started, ended: called for each process, `ended` as soon as it is over; `idle` between looks.
        environment: what processes get beside this process' own and their slot's.

    Raises:
        KeyboardInterrupt: on SIGINT or SIGTERM, after the running processes were stopped; none is lost, all go on
            from their last checkpoint when they are started again.
    """
    waiting, free = deque(queue), deque(range(len(slots)))
    running: dict[int, _Running] = {}
    over: list[Ended] = []
    with terminable():
        try:
            while waiting or running:
                while waiting and free:
                    slot, work = free.popleft(), waiting.popleft()
                    running[slot] = _start(work, slots[slot], environment or {})
                    started(work, slot)
                for slot, end in _reap(running):
                    free.append(slot)
                    over.append(end)
                    ended(end)
                idle()
                time.sleep(POLL)
        finally:
            _stop(list(running.values()))
    return over


def _start(work: Work, slot: Slot, environment: Mapping[str, str]) -> _Running:
    work.log.parent.mkdir(parents=True, exist_ok=True)
    log = work.log.open("ab", buffering=0)
    log.write(f"$ {shlex.join(work.command)}\n".encode())
    process = subprocess.Popen(
        work.command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        env={**os.environ, **slot.environment(), **environment},
        process_group=0,
    )
    _pin(process.pid, slot.cores)
    return _Running(work, process, log, time.monotonic())


def _pin(pid: int, cores: tuple[int, ...]) -> None:
    """Keep a fresh process, and all that it will start, on these cores."""
    try:
        os.sched_setaffinity(pid, cores)
    except (OSError, AttributeError):  # already over, or a system without affinity
        return


def _reap(running: dict[int, _Running]) -> list[tuple[int, Ended]]:
    over = []
    for slot, run in list(running.items()):
        if (status := run.process.poll()) is not None:
            run.log.close()
            del running[slot]
            over.append((slot, Ended(run.work, status, time.monotonic() - run.start)))
    return over


def _stop(running: Sequence[_Running]) -> None:
    """Ask the process groups to end, wait, and kill what is left."""
    for run in running:
        _signal(run.process, signal.SIGTERM)
    end = time.monotonic() + GRACE
    try:
        while any(run.process.poll() is None for run in running) and time.monotonic() < end:
            time.sleep(POLL)
    finally:
        for run in running:
            _signal(run.process, signal.SIGKILL)
            run.process.wait()
            run.log.close()


def _signal(process: subprocess.Popen[Any], number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return


def reason(end: Ended) -> str:
    """Why a process failed, in one line: its last line that speaks, or the signal that ended it."""
    if end.status < 0:
        name = signal.Signals(-end.status).name
        return f"killed by {name}" + (", perhaps for lack of memory" if name == "SIGKILL" else "")
    lines = _tail(end.work.log)
    own = [line for line in lines if line.startswith("paribus: ")]
    last = next((line for line in reversed(own or lines) if line.strip()), f"exit status {end.status}")
    return last.removeprefix("paribus: ").strip()


def _tail(log: Path, size: int = 8192) -> list[str]:
    """The last lines of this process' part of a log."""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - size))
        text = "\n" + file.read().decode("utf-8", "replace")
    _, command, own = text.rpartition("\n$ ")
    return own.splitlines()[1:] if command else own.splitlines()
