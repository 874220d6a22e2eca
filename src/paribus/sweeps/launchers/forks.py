"""Runs that start at once: a process that has imported the training forks another process for each run.

A fork is what `paribus train` in a fresh process would be, with its own log, cores and environment.
`multiprocessing`'s server is not used: its processes import the script of the caller again, start the workers of data
loaders by the server too, and skip exit handlers.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, NamedTuple

from paribus.core.build import kind
from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.processes import Stopped, collect_often, collect_rarely, die_with_parent, stoppable
from paribus.sweeps.launchers.base import LOST, attempt

PRELOADED = (  # what a run imports; that starts no thread and leaves CUDA alone
    "hydra.utils",
    "optuna",
    "paribus.models.text_to_text",
    "paribus.models.encoder",
    "paribus.optim.adamw",
    "paribus.runs.provenance",
    "paribus.tasks.docs.package",
    "paribus.training.finetune",
    "paribus.training.logger",
    "paribus.training.pretrain",
    "paribus.training.run",
    "requests",
    "torch._dynamo",  # by the first optimizer
    "torch.utils.serialization.config",  # by the first checkpoint
    "torchmetrics.functional",
    "wandb",
)
POLL = 0.02  # seconds between two looks for ended processes


class ForkOrder(NamedTuple):
    """A run that is to start: its resolved config and what to do with it, the log that exists, its CPU cores, and
    environment variables.
    """

    config: Mapping[str, Any]
    call: Callable[[Mapping[str, Any]], None]
    log: Path
    cores: tuple[int, ...]
    environment: Mapping[str, str]


class ForkServer:
    """The process that forks runs, started with `environment`. They end with the process that made this object."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.connection, theirs = Pipe()
        code = f"from {__name__} import serve; serve({theirs.fileno()}, {os.getpid()})"
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**os.environ, **environment},
                pass_fds=[theirs.fileno()],
                process_group=0,
            )
        self.alive = True
        self._ended: dict[int, int] = {}

    def start(self, order: ForkOrder) -> Fork | None:
        """The process of a run, or None if the server has died."""
        try:
            self.connection.send(order)
            while not isinstance(message := self.connection.recv(), int):
                self._ended.update([message])
        except (EOFError, OSError):
            self.alive = False
            return None
        self._ended.pop(message, None)  # of an earlier process with this number
        return Fork(self, message)

    def status(self, pid: int) -> int | None:
        """The exit status of a run's process, or None while it runs. If the server has died, the process is killed."""
        try:
            while self.connection.poll():
                self._ended.update([self.connection.recv()])
        except (EOFError, OSError):
            self.alive = False
        if pid not in self._ended and not self.alive:
            kill(pid, signal.SIGKILL)
            return LOST
        return self._ended.get(pid)

    def close(self) -> None:
        """End the server, even if it is still loading libraries. Its runs, which the pool has stopped, end with it."""
        self.connection.close()
        self.process.terminate()
        self.process.wait()


class Fork(NamedTuple):
    """The process of a run, which `subprocess.Popen` would have."""

    server: ForkServer
    pid: int

    def poll(self) -> int | None:
        return self.server.status(self.pid)

    def wait(self) -> int:
        while (status := self.poll()) is None:
            time.sleep(POLL)
        return status


def kill(group: int, number: signal.Signals) -> None:
    """Send a signal to a group of processes, if there is one."""
    with suppress(ProcessLookupError):
        os.killpg(group, number)


def preload() -> None:
    """Import all that a run imports."""
    for name in PRELOADED:
        importlib.import_module(name)


def serve(number: int, parent: int) -> None:
    """Fork a process for every `ForkOrder` from the connection, and report how each ended. Ends with its parent."""
    die_with_parent(parent)
    server = os.getpid()
    collect_rarely()
    preload()
    if (order := _fork_orders(Connection(number))) is None:
        return
    die_with_parent(server)  # from here on as a fresh process would: the exit status and the log are the same
    with order.log.open("ab", buffering=0) as log:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(log.fileno(), stream.fileno())
    os.environ.update(order.environment)
    with suppress(OSError, AttributeError):  # the system has no CPU affinity
        os.sched_setaffinity(0, order.cores)
    try:
        with stoppable():
            status = attempt(order.config, order.call)
    except Stopped as error:
        say(f"paribus: {error}")
        status = error.status
    sys.exit(status)


def _fork_orders(connection: Connection) -> ForkOrder | None:
    """An order, in the process that is to follow it; None in this one, after the other side is gone."""
    running: set[int] = set()
    try:
        while True:
            if connection.poll(POLL):
                order: ForkOrder = connection.recv()
                _import_components(order.config)
                collect_often()
                if (pid := os.fork()) == 0:
                    os.setpgid(0, 0)
                    connection.close()
                    return order
                with suppress(OSError):  # the process is in its own group already
                    os.setpgid(pid, pid)
                running.add(pid)
                connection.send(pid)
            for pid in list(running):
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    running.remove(pid)
                    connection.send((pid, os.waitstatus_to_exitcode(status)))
    except (EOFError, OSError):
        for pid in running:
            kill(pid, signal.SIGTERM)
        return None


def _import_components(node: object) -> None:
    """Import the classes that a config names; the run itself reports one that cannot be imported."""
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        _import_components(value)
    if isinstance(node, dict) and isinstance(target := node.get("_target_"), str):
        with suppress(UserError):
            kind(target)
