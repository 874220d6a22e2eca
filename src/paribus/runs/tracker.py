"""A W&B run that never stops the training: a failure is printed once, and training continues without W&B."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from paribus.core.console import say
from paribus.core.errors import UserError

STEP = "trainer/global_step"  # the axis of curves: a resumed run counts W&B's own steps from 0 again
INIT_SECONDS, FINISH_SECONDS = 20.0, 60.0  # how long a server is waited for
STATUS = "status"
_REPORTING = "WANDB_ERROR_REPORTING"  # whether W&B sends its own errors and timings to its server
_DATA_DIR = "WANDB_DATA_DIR"  # the folder in which W&B keeps artifacts until they are uploaded


class About(NamedTuple):
    """A W&B run to open. `id`: the same for the same work, so that a resumed process continues it."""

    id: str
    name: str
    group: str
    job_type: str
    tags: tuple[str, ...]
    config: Mapping[str, Any]
    folder: Path


class Destination(NamedTuple):
    """Where W&B runs belong. `online` is called each time, since a server that was not reached is not tried again."""

    project: str
    entity: str | None
    online: Callable[[], bool]


def agent_run() -> str | None:
    """The id of the run that a W&B agent asked this process to do, which W&B then uses whatever id is given to it."""
    return os.environ.get("WANDB_RUN_ID") if os.environ.get("WANDB_SWEEP_ID") else None


def refuse_agent() -> None:
    """Raises UserError under a W&B agent, for a command of several runs: W&B would mix them up as one."""
    if agent_run() is not None:
        raise UserError("a W&B agent asks for one run at a time", "use `paribus train` without -m in its command")


class _Server:
    """Whether the server was found to be out of reach in this process, and the data folder that we chose."""

    lost = False
    data: str | None = None


def reachable() -> bool:
    """False once a server could not be reached."""
    return not _Server.lost


class Tracked:
    """One W&B run. No method raises. `alive`: whether it still accepts lines; `lines`: how many it accepted."""

    def __init__(self, about: About, to: Destination) -> None:
        self.about, self.to = about, to
        self.lines = 0
        self._run: Any = None
        self._open()

    @property
    def alive(self) -> bool:
        return self._run is not None

    def log(self, values: Mapping[str, Any], step: int | None = None) -> None:
        """One row of history; `step`: of the optimizer."""
        self.lines += 1
        row = dict(values) if step is None else {**values, STEP: step}
        self.do(lambda run: run.log(row))

    def summarize(self, values: Mapping[str, Any]) -> None:
        """Final values."""
        self.do(lambda run: run.summary.update(dict(values)))

    def tag(self, name: str) -> None:
        def add(run: Any) -> None:
            run.tags = (*(run.tags or ()), name)

        self.do(add)

    def do(self, action: Callable[[Any], None]) -> None:
        """Give W&B's own run to `action`; after a failure the run is over."""
        if self._run is None:
            return
        try:
            action(self._run)
        except Exception as error:  # the service, its server or its disk may fail in any way
            self._run = None
            _restart()
            say(f"W&B stopped ({_cause(error)}); {self.about.name} continues without it")

    def again(self) -> bool:
        """Start again after a failure, under the same id. Returns whether that was needed and went well."""
        if self.alive:
            return False
        self._open()
        return self.alive

    def close(self, status: str, failed: bool = False) -> None:
        """Log the final status; W&B shows the run as failed if it did."""
        self.summarize({STATUS: status})
        self.do(lambda run: run.finish(exit_code=int(failed)))
        self._run = None

    def _open(self) -> None:
        if self.to.online():
            try:
                self._run = self._begin("online")
                return
            except Exception as error:
                _Server.lost = True
                _restart()
                say(f"W&B is logged offline: {_cause(error)}")
        try:
            self._run = self._begin("offline")
        except Exception as error:
            _restart()
            say(f"W&B is off for this run: {_cause(error)}")

    def _begin(self, mode: Literal["online", "offline"]) -> Any:
        os.environ.setdefault("WANDB_SILENT", "true")
        if mode == "offline":
            os.environ.setdefault(_REPORTING, "false")  # W&B would otherwise call home about itself
        _stage_below(self.about.folder)
        import wandb

        about = self.about
        about.folder.mkdir(parents=True, exist_ok=True)
        settings = wandb.Settings(
            init_timeout=INIT_SECONDS, finish_timeout=FINISH_SECONDS, console="off", disable_git=True,
            disable_code=True,
            x_save_requirements=False,  # a list of all packages takes a quarter of a second; the config names ours
        )  # fmt: skip
        run = wandb.init(
            name=about.name, project=self.to.project, entity=self.to.entity, id=about.id, dir=str(about.folder),
            group=about.group, job_type=about.job_type, tags=list(about.tags), config=dict(about.config),
            resume="allow", mode=mode, settings=settings,
        )  # fmt: skip
        run.define_metric("*", step_metric=STEP)
        return run


def _stage_below(folder: Path) -> None:
    """Keep what is to be uploaded beside the run, unless the user has chosen a place."""
    if os.environ.get(_DATA_DIR) in (None, _Server.data):
        _Server.data = str(folder.resolve() / "wandb")
        os.environ[_DATA_DIR] = _Server.data


def _restart() -> None:
    """Forget a service that failed, so that the next run starts another and the end of the process is quiet."""
    try:
        import wandb

        wandb.teardown()
    except Exception:  # a dead service cannot be stopped
        return


def _cause(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
