"""The W&B runs of a run: one per stage (pre-training, fine-tuning), each with an id derived from the run's id.

W&B never stops the training: a failure is printed once, and training continues without W&B.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from paribus.core.checksums import digest, read_sealed
from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.files import write_sealed
from paribus.runs.folder import CURVES, read_lines
from paribus.runs.identity import Identity
from paribus.runs.provenance import versions
from paribus.runs.record import Record
from paribus.runs.store import is_trial_study, portable_config

PRETRAIN, FINETUNE, TRIAL, STUDY = "pretrain", "finetune", "trial", "study"  # job types
BUDGET = "budget/"  # before the names of what a run spent
CLOSED = "tracked.json"  # in a run's folder: the stages that W&B has whole, with their ids
STEP = "trainer/global_step"  # the axis of curves: a resumed run counts W&B's own steps from 0 again
INIT_SECONDS, FINISH_SECONDS = 20.0, 60.0  # how long a server is waited for
STATUS = "status"
_REPORTING = "WANDB_ERROR_REPORTING"  # whether W&B sends its own errors and timings to its server
_DATA_DIR = "WANDB_DATA_DIR"  # the folder in which W&B keeps artifacts until they are uploaded


class WandbInit(NamedTuple):
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

    def __init__(self, about: WandbInit, to: Destination) -> None:
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
        if os.environ.get(_DATA_DIR) in (None, _Server.data):  # keep uploads beside the run, unless the user says where
            _Server.data = str(self.about.folder.resolve() / "wandb")
            os.environ[_DATA_DIR] = _Server.data
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


def _restart() -> None:
    """Forget a service that failed, so that the next run starts another and the end of the process is quiet."""
    try:
        import wandb

        wandb.teardown()
    except Exception:  # a dead service cannot be stopped
        return


def _cause(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def group_of(study: str, scale: str | None) -> str:
    """The W&B group of a study's runs at a scale."""
    return f"{study}-{scale}"


def run_id(signature: str, group: str, arm: str, stage: str = PRETRAIN) -> str:
    """The id of a stage. Studies may share a run by its meaning, but W&B keeps a run in one group: hence the rest."""
    pretraining = f"{signature}-{digest([group, arm], 6)}"
    return pretraining if stage == PRETRAIN else f"{pretraining}-{stage}"


class Logger(Protocol):
    """Where the curves of a run go besides metrics.jsonl."""

    @property
    def tells(self) -> bool:
        """Whether it logs anything."""

    def open(self, about: WandbInit) -> Tracked | None:
        """A tracked stage, or None if nothing is logged."""


@dataclass(frozen=True)
class TrackedStages:
    """Opens the stages of one run on its logger. `config` is plain data; `opened`: {stage: id} in this process.

    Under a W&B agent all stages are the one run that the agent asked for.
    """

    config: Mapping[str, Any]
    logger: Logger
    identity: Identity
    opened: dict[str, str] = field(default_factory=dict)

    @property
    def wandb_id(self) -> str | None:
        """The pre-training's W&B id, if it has one."""
        return {**self._closed(), **self.opened}.get(PRETRAIN)

    @contextmanager
    def stage(self, name: str) -> Iterator[Tracked | None]:
        """A stage that is running; None if there is no logger or it has the whole stage.

        It ends as done, or if the block raises, as pruned, diverged, stopped or failed.
        """
        tracked: Tracked | None = None
        about = self._about(name)
        known = self._closed().get(name) == about.id
        if not known and (tracked := self.logger.open(about)) is not None:
            self.opened[name] = tracked.about.id
        try:
            yield tracked
        except BaseException as error:
            if tracked is not None:
                ends = {"TrialPruned": "pruned", "Diverged": "diverged", "Stopped": "stopped"}
                status = ends.get(type(error).__name__, "failed")
                if status == "pruned":
                    tracked.tag(status)
                tracked.close(status, failed=status != "pruned")
            raise
        if tracked is not None:
            whole = tracked.alive
            tracked.close("done")
            if whole:
                write_sealed(self.identity.folder / CLOSED, {**self._closed(), name: tracked.about.id})

    def tell_agent(self, record: Record) -> None:
        """Give a run that was found finished to the W&B agent that asked for it, if there is one."""
        about = self._about(PRETRAIN)
        if about.id != agent_run() or self._closed().get(PRETRAIN) == about.id:
            return
        if (tracked := self.logger.open(about)) is not None:
            tell(tracked, {"metrics": record.metrics, "budget": record.budget}, self.identity.folder / CURVES)
            tracked.close(record.status, failed=record.status != "done")

    def _closed(self) -> dict[str, str]:
        path = self.identity.folder / CLOSED
        return read_sealed(path) or {}

    def _about(self, stage: str) -> WandbInit:
        identity = self.identity
        study, arm, scale, search = (self.config.get(key) for key in ("study", "arm", "scale", "trial"))
        trial = search is not None or is_trial_study(str(study))
        group = group_of(str(study), scale) if search is None else str(search["study"])
        asked = agent_run()
        tags = [str(study), str(scale), str(arm), *([TRIAL] if trial else [])]
        signatures = {"signature": identity.signature, "pretrain_signature": identity.pretrain}
        return WandbInit(
            id=asked or run_id(identity.signature, group, str(arm), stage),
            name=f"{study}/{arm}/seed{self.config['seed']}" + ("" if asked or stage == PRETRAIN else f" {stage}"),
            group=group,
            job_type=TRIAL if trial and stage == PRETRAIN else stage,
            tags=tuple(tag[:64] for tag in dict.fromkeys(tags)),
            config={**portable_config(self.config), **signatures, "stage": stage, "versions": dict(versions())},
            folder=identity.folder,
        )


def tell(tracked: Tracked | None, part: Mapping[str, Any], curves: Path | None = None) -> None:
    """Write the results of a stage as W&B's summary.

    Args:
        part: the stage's part of the record.
        curves: its metrics.jsonl, logged again if this process logged nothing of it (another arm has trained it)
            or the service was lost.
    """
    if tracked is None:
        return
    if curves is not None and (tracked.again() or tracked.lines == 0):
        for line in read_lines(curves):
            tracked.log({key: value for key, value in line.items() if key != "step"}, line.get("step", 0))
    budget = {f"{BUDGET}{key}": value for key, value in part.get("budget", {}).items()}
    tracked.summarize({**part.get("metrics", {}), **budget})
