"""`launcher=ray`: one task per run, on a Ray cluster or a Ray instance of this machine (https://docs.ray.io)."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.sweeps.launchers.base import LOST, ClusterPool, Demand, Events, Launcher, RemoteRun, Submitted, Work


@dataclass(frozen=True)
class Ray(Launcher):
    """Resources of one run. `options`: further arguments of `ray.remote`, such as custom resources."""

    address: str | None = None
    cpus: int = 1
    gpus: float = 0
    memory_gb: float | None = None
    retries: int = 3
    options: Mapping[str, Any] = field(default_factory=dict)
    poll_seconds: float = 1.0
    remote: ClassVar[bool] = True

    def open(self, demand: Demand) -> RayPool:
        """Raises UserError if Ray is not installed, no cluster answers, or `slots` is below 1."""
        size = demand.size()
        try:
            import ray
        except ImportError as error:
            raise UserError("launcher=ray needs ray", "pip install 'paribus[ray]'") from error
        quiet = {"include_dashboard": False, "log_to_driver": False, "configure_logging": False}
        try:
            ray.init(self.address, ignore_reinit_error=True, **quiet)
        except (ConnectionError, ValueError, RuntimeError) as error:
            cause = f"no Ray cluster answers at {self.address} ({error})"
            raise UserError(cause, "start one with `ray start --head`") from error
        available = ray.cluster_resources()
        for name, key, wanted in (("CPUs", "CPU", self.cpus), ("GPUs", "GPU", self.gpus)):
            if wanted > (has := available.get(key, 0)):
                say(f"a run needs {wanted:g} {name}, but Ray has {has:g}: it waits until the cluster has more")
        options: dict[str, Any] = {"num_cpus": self.cpus, "num_gpus": self.gpus, "max_retries": self.retries}
        options["max_calls"] = 1  # a new process for each run
        if self.memory_gb is not None:
            options["memory"] = round(self.memory_gb * 2**30)
        task = ray.remote(**{**options, **self.options})(_train)
        return RayPool(ray, task, size, self.cpus, self.poll_seconds)


def _train(run: RemoteRun, folder: str, log: str) -> int:
    """The task: train in the caller's working directory, with all output in the run's log."""
    os.chdir(folder)
    with open(log, "ab", buffering=0) as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
        return run()


@dataclass
class _Task(Submitted):
    """`size`: bytes of the log before the task; a longer log shows that the task has started."""

    size: int = 0


class RayPool(ClusterPool):
    """The tasks of a sweep, at most `size` at once. They end with this process."""

    def __init__(self, ray: Any, task: Any, size: int, threads: int, poll_seconds: float) -> None:
        super().__init__(size, threads, poll_seconds)
        self.ray, self.task = ray, task

    def submit(self, waiting: deque[Work], running: int) -> list[Submitted]:
        submitted: list[Submitted] = []
        for _ in range(min(len(waiting), self.size - running)):
            work = waiting.popleft()
            assert work.config is not None
            work.log.parent.mkdir(parents=True, exist_ok=True)
            run = RemoteRun(work.label, work.config)
            handle = self.task.remote(run, os.getcwd(), str(work.log.absolute()))
            submitted.append(_Task(work, handle, size=_size(work.log)))
        return submitted

    def poll(self, running: list[Submitted], events: Events) -> list[Submitted]:
        over, _ = self.ray.wait([task.handle for task in running], num_returns=len(running), timeout=0)
        for task in running:
            if task.started is None and isinstance(task, _Task) and _size(task.work.log) > task.size:
                task.started = time.monotonic()
                events.started(task.work, "a Ray task")
            if task.handle in over:
                events.ended(task.end(self._status(task.handle)))
        return [task for task in running if task.handle not in over]

    def _status(self, handle: Any) -> int:
        """What a task returned; LOST if its process or its node died."""
        try:
            return int(self.ray.get(handle))
        except self.ray.exceptions.RayError as error:
            say(f"Ray: {' '.join(str(error).split())[:300]}")
            return LOST

    def close(self, running: list[Submitted]) -> None:
        self.ray.shutdown()


def _size(log: Path) -> int:
    return log.stat().st_size if log.is_file() else 0
