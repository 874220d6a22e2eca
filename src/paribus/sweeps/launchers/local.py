"""`launcher=local`: every run is a process in a slot of this machine, with its own cores or GPUs.

A run with a config is forked from a process that has imported the training; other work is a command.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from paribus.core.errors import UserError
from paribus.core.files import temporary_folder
from paribus.core.processes import check_ranks, die_with_parent, gpus, stoppable
from paribus.core.trust import mask_text
from paribus.sweeps.launchers.base import Demand, Ended, Events, Launcher, Pool, Work
from paribus.sweeps.launchers.forks import Fork, ForkOrder, ForkServer, kill

POLL = 0.05  # seconds between two polls of the processes
GRACE = 30.0  # seconds that a stopped process has to end by itself
_KERNELS = "TORCHINDUCTOR_CACHE_DIR"
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(frozen=True)
class Local(Launcher):
    """Divides the machine's cores and GPUs among slots."""

    def open(self, demand: Demand) -> Slots:
        """Raises UserError if `slots` is below 1, and as `machine_slots` does."""
        return Slots(machine_slots(demand.size(), demand.slots, demand.ranks))


class Slot(NamedTuple):
    """A share of the machine: CPU `cores`, which `sharers` slots have together, and the value of CUDA_VISIBLE_DEVICES
    (None leaves it unchanged).
    """

    cores: tuple[int, ...]
    device: str | None = None
    sharers: int = 1

    @property
    def threads(self) -> int:
        """CPU threads of a run."""
        return max(1, len(self.cores) // self.sharers)

    def environment(self) -> dict[str, str]:
        """The environment variables that a process in this slot gets."""
        threads = dict.fromkeys(_THREADS, str(self.threads))
        return threads if self.device is None else {**threads, "CUDA_VISIBLE_DEVICES": self.device}


def machine_slots(runs: int, wanted: int | None = None, ranks: int = 1) -> list[Slot]:
    """Divide cores and GPUs among slots.

    Slots have equally many cores of their own. If there are more slots than cores, all share all cores.

    Args:
        runs: number of runs; there are never more slots than that.
        wanted: number of slots. By default, one for each group of `ranks` GPUs, or of `ranks` cores without GPUs.
        ranks: processes that train one run.

    Raises:
        UserError: as `check_ranks` does.
    """
    cores, devices = sorted(os.sched_getaffinity(0)), gpus()
    check_ranks(ranks, len(devices))
    groups = [",".join(devices[at : at + ranks]) for at in range(0, len(devices) - ranks + 1, ranks)]
    count = max(1, min(wanted or len(groups) or max(1, len(cores) // ranks), runs))
    visible = [groups[at % len(groups)] if groups else None for at in range(count)]
    if count > len(cores):
        return [Slot(tuple(cores), device, count) for device in visible]
    size = len(cores) // count
    return [Slot(tuple(cores[at * size : (at + 1) * size]), device) for at, device in enumerate(visible)]


@dataclass
class _Running:
    work: Work
    process: subprocess.Popen[bytes] | Fork
    start: float


class Slots(Pool):
    """A pool of processes: a free slot takes the next run at once. The processes end with this one."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.slots, self.size, self.threads = slots, len(slots), slots[0].threads
        self.server: ForkServer | None = None
        self.temporary = ""  # where the processes keep temporary files

    def run(self, queue: Sequence[Work], events: Events) -> None:
        """Raises Stopped on SIGINT or SIGTERM, after it has stopped the running processes.

        Stopped runs resume from their last checkpoint when they are started again. Raises UserError for work without
        a command that cannot be forked.
        """
        waiting, free = deque(queue), deque(range(self.size))
        running: dict[int, _Running] = {}
        with stoppable(), temporary_folder() as place:
            self.temporary = str(place)
            try:
                while waiting or running:
                    # the first run that would not wait for another process
                    while free and (work := next((one for one in waiting if not events.held(one)), None)) is not None:
                        waiting.remove(work)
                        slot = free.popleft()
                        running[slot] = self._start(work, self.slots[slot])
                        events.started(work, f"slot {slot + 1} of {self.size}")
                    for slot, end in _collect_ended(running):
                        free.append(slot)
                        events.ended(end)
                    events.idle()
                    time.sleep(POLL)
            finally:
                _stop(list(running.values()))
                if self.server is not None:
                    self.server.close()
                    self.server = None

    def _start(self, work: Work, slot: Slot) -> _Running:
        work.log.parent.mkdir(parents=True, exist_ok=True)
        with work.log.open("ab") as log:
            log.write(f"$ {shlex.join(map(mask_text, work.command))}\n".encode())
        # compiled kernels outlast the sweep, other temporary files do not
        kernels = os.environ.get(_KERNELS) or f"{tempfile.gettempdir()}/torchinductor_{os.getuid()}"
        environment = {**slot.environment(), "TMPDIR": self.temporary, _KERNELS: kernels}
        process: Fork | None = None
        if work.config is not None:
            if self.server is None or not self.server.alive:
                self.server = ForkServer(environment)
            process = self.server.start(ForkOrder(work.config, work.call, work.log, slot.cores, environment))
        if process is None and not work.command:  # a server that was just started died, as it does without memory
            raise UserError(f"{work.label} could not be started: its process died", "use fewer slots, which need less")
        return _Running(work, process or _open_command(work, slot, environment), time.monotonic())


def _open_command(work: Work, slot: Slot, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    with work.log.open("ab", buffering=0) as log:
        process = subprocess.Popen(
            work.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            process_group=0,
            preexec_fn=partial(die_with_parent, os.getpid()),
        )
    with suppress(OSError, AttributeError):  # the process has ended, or the system has no CPU affinity
        os.sched_setaffinity(process.pid, slot.cores)
    return process


def _collect_ended(running: dict[int, _Running]) -> list[tuple[int, Ended]]:
    """Remove the ended processes from `running`, {slot: process}."""
    ended = []
    for slot, run in list(running.items()):
        if (status := run.process.poll()) is not None:
            del running[slot]
            ended.append((slot, Ended(run.work, status, time.monotonic() - run.start)))
    return ended


def _stop(running: Sequence[_Running]) -> None:
    """Tell the process groups to end, wait for GRACE seconds, and kill what is left."""
    for run in running:
        kill(run.process.pid, signal.SIGTERM)
    end = time.monotonic() + GRACE
    try:
        while any(run.process.poll() is None for run in running) and time.monotonic() < end:
            time.sleep(POLL)
    finally:
        for run in running:
            kill(run.process.pid, signal.SIGKILL)
            run.process.wait()
