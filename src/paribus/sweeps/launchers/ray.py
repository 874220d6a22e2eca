"""`launcher=ray`: a task a run, on a Ray cluster or a Ray of this machine (https://docs.ray.io)."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.processes import terminable
from paribus.sweeps.launchers.job import LOST, Remote
from paribus.sweeps.launchers.launcher import Demand, Events
from paribus.sweeps.pool import Ended, Work


@dataclass(frozen=True)
class Ray:
    """What a run is given. `options`: more of `ray.remote`, such as a node's own resources."""

    address: str | None = None
    cpus: int = 1
    gpus: float = 0
    memory_gb: float | None = None
    retries: int = 3
    options: Mapping[str, Any] = field(default_factory=dict)
    poll_seconds: float = 1.0
    elsewhere: ClassVar[bool] = True

    def open(self, demand: Demand) -> Tasks:
        """Raises UserError without ray, where no cluster answers, and for a number of slots below 1."""
        size = demand.size()
        try:
            import ray
        except ImportError as error:
            raise UserError("launcher=ray needs ray", "pip install 'paribus[ray]'") from error
        own = {"include_dashboard": False, "log_to_driver": False, "configure_logging": False}
        try:
            ray.init(self.address, ignore_reinit_error=True, **own)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise UserError(f"no Ray answers at {self.address} ({error})", "start one by `ray start --head`") from error
        self._tell_of_what_lacks(ray.cluster_resources())
        task = ray.remote(**self._settings())(_work)
        return Tasks(ray, task, size, self.cpus, self.poll_seconds)

    def _settings(self) -> dict[str, Any]:
        memory = {} if self.memory_gb is None else {"memory": round(self.memory_gb * 2**30)}
        fresh = {"max_calls": 1}  # every run in a process of its own
        return {"num_cpus": self.cpus, "num_gpus": self.gpus, "max_retries": self.retries, **memory, **fresh} | dict(
            self.options
        )

    def _tell_of_what_lacks(self, there: Mapping[str, float]) -> None:
        """Say what no task can get as the cluster is now; it may still grow."""
        for name, key, wanted in (("CPUs", "CPU", self.cpus), ("GPUs", "GPU", self.gpus)):
            if wanted > (found := there.get(key, 0)):
                say(f"a run asks for {wanted:g} {name} and Ray has {found:g}: it waits until there are more")


def _work(run: Remote, folder: str, log: str) -> int:
    """What a task does: the run, from the folder where it was asked for, with its output in its log."""
    os.chdir(folder)
    with open(log, "ab", buffering=0) as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
        return run()


@dataclass
class _Task:
    """A task under way. `size`: of the log before it; `seen`: when it was first seen to run."""

    work: Work
    start: float
    size: int
    seen: float | None = None

    def ended(self, status: int) -> Ended:
        return Ended(self.work, status, time.monotonic() - (self.seen or self.start))


class Tasks:
    """The tasks of a sweep; they end with this process."""

    def __init__(self, ray: Any, task: Any, size: int, threads: int, poll: float) -> None:
        self.ray, self.task, self.size, self.threads, self.poll = ray, task, size, threads, poll

    def run(self, queue: Sequence[Work], events: Events) -> None:
        """As many tasks at once as there are slots; where and when each runs is Ray's to say."""
        waiting, under_way = list(reversed(queue)), dict[Any, _Task]()
        try:
            with terminable():
                while waiting or under_way:
                    while waiting and len(under_way) < self.size:
                        work = waiting.pop()
                        under_way[self._submitted(work)] = _Task(work, time.monotonic(), _size(work.log))
                    self._look(under_way, events)
                    events.idle()
        finally:
            self.ray.shutdown()

    def _submitted(self, work: Work) -> Any:
        work.log.parent.mkdir(parents=True, exist_ok=True)
        return self.task.remote(Remote(work.label, work.config), os.getcwd(), str(work.log.absolute()))

    def _look(self, under_way: dict[Any, _Task], events: Events) -> None:
        over, _ = self.ray.wait(list(under_way), num_returns=len(under_way), timeout=self.poll)
        for task in under_way.values():
            if task.seen is None and _size(task.work.log) > task.size:
                task.seen = time.monotonic()
                events.started(task.work, "a Ray task")
        for reference in over:
            events.ended(under_way.pop(reference).ended(self._status(reference)))

    def _status(self, reference: Any) -> int:
        """What a task returned; LOST where its process or its node did not come back."""
        try:
            return int(self.ray.get(reference))
        except self.ray.exceptions.RayError as error:
            say(f"Ray: {' '.join(str(error).split())[:300]}")
            return LOST


def _size(log: Path) -> int:
    return log.stat().st_size if log.is_file() else 0
