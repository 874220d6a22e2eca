"""The base class of launchers. A launcher opens a pool for runs; a YAML file in `conf/launcher` names its class."""

from __future__ import annotations

import signal
import sys
import time
import traceback
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.files import read_end
from paribus.core.processes import stoppable

if TYPE_CHECKING:
    from paribus.training.description import Run

LOST = -signal.SIGKILL  # the status of a run whose process ended without a result


def train(described: Mapping[str, Any] | Run) -> None:
    """Train a run, or that of a resolved config, in this process."""
    from paribus.training.run import run

    run(described)


class Work(NamedTuple):
    """One run. Its output is appended to `log`.

    Args:
        label: the run's name for the reader.
        command: the command line that does it in a process on this machine; empty if only `call` can.
        config: the whole resolved config, for a launcher that needs no command; None leaves the command.
        call: what such a launcher does with the config; it trains by default.
    """

    label: str
    command: tuple[str, ...]
    log: Path
    config: Mapping[str, Any] | None = None
    call: Callable[[Mapping[str, Any]], None] = train


class Ended(NamedTuple):
    """How a run ended. `status`: the exit status of its process, negative for a signal."""

    work: Work
    status: int
    seconds: float


class Demand(NamedTuple):
    """What a sweep tells a launcher.

    Args:
        runs: number of runs.
        slots: runs that train at once; None for as many as fit.
        ranks: processes that train one run.
        folder: where the launcher may write its own files.
    """

    runs: int
    slots: int | None
    ranks: int
    folder: Path

    def size(self) -> int:
        """How many runs train at once if there is room for all. Raises UserError if `slots` is below 1."""
        if self.slots is not None and self.slots < 1:
            raise UserError(f"slots={self.slots} is below 1", "use slots=auto or a positive number of parallel runs")
        return min(self.runs, self.slots or self.runs)


class Events(NamedTuple):
    """Callbacks of a pool.

    Args:
        started: a run starts; gets the run and a name of the place, such as `slot 1 of 2`.
        requeued: a run lost its place and waits for a new one.
        ended: a run ended.
        idle: called between two polls.
        held: whether a run would wait for another process. Local slots then take the next run; a cluster, whose
            runs start later, ignores it.
    """

    started: Callable[[Work, str], object] = lambda work, place: None
    requeued: Callable[[Work], object] = lambda work: None
    ended: Callable[[Ended], object] = lambda end: None
    idle: Callable[[], object] = lambda: None
    held: Callable[[Work], bool] = lambda work: False


class Pool(ABC):
    """Room for runs. `size`: runs that train at once; `threads`: CPU threads of one run, None for the machine's
    default.
    """

    size: int
    threads: int | None

    @abstractmethod
    def run(self, queue: Sequence[Work], events: Events) -> None:
        """Do every run in the queue; one that fails does not stop the others. Raises Stopped on SIGINT."""


class Launcher(ABC):
    """A choice of the config group `launcher`. `remote`: whether runs leave this machine."""

    remote: ClassVar[bool] = False

    @abstractmethod
    def open(self, demand: Demand) -> Pool:
        """The pool for a sweep's runs. Raises UserError if the launcher cannot give what the sweep needs."""


@dataclass(frozen=True)
class RemoteRun:
    """A run for another machine. It carries its whole config, so edits to files cannot change it while it waits."""

    label: str
    config: Mapping[str, Any]

    def __call__(self) -> int:
        """Train in this process; returns the exit status of `attempt`."""
        print(f"$ {self.label}", file=sys.stderr, flush=True)
        return attempt(self.config)


def attempt(config: Mapping[str, Any], call: Callable[[Mapping[str, Any]], None] = train) -> int:
    """Train a resolved config in this process, or do something else with it; returns 0, or 2 after a failure, which
    the log explains.
    """
    try:
        call(config)
    except UserError as error:
        say(f"paribus: {error}")
        return 2
    except Exception as error:  # including submitit's own, for a job that timed out too often
        traceback.print_exc()
        say(f"paribus: {type(error).__name__}: {error}")
        return 2
    return 0


@dataclass
class Submitted:
    """A run that a cluster holds. `handle`: the cluster's object for it; `started`: when it was first seen to run."""

    work: Work
    handle: Any
    submitted: float = field(default_factory=time.monotonic)
    started: float | None = None

    def end(self, status: int, log: Path | None = None) -> Ended:
        """The end of the run, with its seconds since it started. `log`: where the cluster wrote its output."""
        work = self.work._replace(log=log or self.work.log)
        return Ended(work, status, time.monotonic() - (self.started or self.submitted))


class ClusterPool(Pool):
    """Submits runs to a cluster and polls it until all have ended. A subclass supplies `submit`, `poll` and `close`."""

    def __init__(self, size: int, threads: int | None, poll_seconds: float) -> None:
        self.size, self.threads, self.poll_seconds = size, threads, poll_seconds

    @abstractmethod
    def submit(self, waiting: deque[Work], running: int) -> list[Submitted]:
        """Take runs from the left of `waiting` and submit them. `running`: how many the cluster already holds."""

    @abstractmethod
    def poll(self, running: list[Submitted], events: Events) -> list[Submitted]:
        """Ask the cluster once, report changes to `events`, and return the runs that have not ended."""

    @abstractmethod
    def close(self, running: list[Submitted]) -> None:
        """Leave the cluster. `running`: the runs that have not ended, if the pool was interrupted."""

    def run(self, queue: Sequence[Work], events: Events) -> None:
        waiting, running = deque(queue), list[Submitted]()
        with stoppable():
            try:
                while waiting or running:
                    running += self.submit(waiting, len(running))
                    running = self.poll(running, events)
                    events.idle()
                    if waiting or running:
                        time.sleep(self.poll_seconds)
            finally:
                self.close(running)


def failure_reason(end: Ended) -> str:
    """Why a run failed, in one line: the last line of its log, or the signal that ended it."""
    if end.status < 0:
        name = next((known.name for known in signal.Signals if known == -end.status), f"signal {-end.status}")
        mend = ", perhaps out of memory: a smaller profile.microbatch or fewer slots need less"
        return f"killed by {name}" + (mend if name == "SIGKILL" else "")
    lines = read_end(end.work.log, 8192)
    commands = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    if commands:  # what the log holds of earlier commands does not count
        lines = lines[commands[-1] + 1 :]
    ours = [line for line in lines if line.startswith("paribus: ")]
    last = next((line for line in reversed(ours or lines) if line.strip()), f"exit status {end.status}")
    return last.removeprefix("paribus: ").strip()
