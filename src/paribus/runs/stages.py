"""The W&B runs of one run: one per stage, each with an id derived from the run's id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from paribus.core.checksums import digest, read_sealed
from paribus.core.files import write_sealed
from paribus.runs.folder import CURVES, read_lines
from paribus.runs.identity import Identity
from paribus.runs.provenance import versions
from paribus.runs.record import Record
from paribus.runs.store import is_trial_study, portable_config
from paribus.runs.tracker import About, Tracked, agent_run

PRETRAIN, FINETUNE, TRIAL, STUDY = "pretrain", "finetune", "trial", "study"  # job types
BUDGET = "budget/"  # before the names of what a run spent
CLOSED = "tracked.json"  # in a run's folder: the stages that W&B has whole, with their ids


def group(study: str, scale: str | None) -> str:
    """The W&B group of a study's runs at a scale."""
    return f"{study}-{scale}"


def run_id(signature: str, group: str, arm: str, stage: str = PRETRAIN) -> str:
    """The id of a stage. Studies may share a run by its meaning, but W&B keeps a run in one group: hence the rest."""
    own = f"{signature}-{digest([group, arm], 6)}"
    return own if stage == PRETRAIN else f"{own}-{stage}"


class Logger(Protocol):
    """Where the curves of a run go besides metrics.jsonl."""

    @property
    def tells(self) -> bool:
        """Whether it logs anything."""

    def open(self, about: About) -> Tracked | None:
        """A tracked stage, or None if nothing is logged."""


@dataclass(frozen=True)
class Stages:
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
            _abandon(tracked, error)
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

    def _about(self, stage: str) -> About:
        identity = self.identity
        study, arm, scale, search = (self.config.get(key) for key in ("study", "arm", "scale", "trial"))
        trial = search is not None or is_trial_study(str(study))
        own = str(search["study"]) if search is not None else group(str(study), scale)
        asked = agent_run()
        tags = [str(study), str(scale), str(arm), *([TRIAL] if trial else [])]
        return About(
            id=asked or run_id(identity.signature, own, str(arm), stage),
            name=f"{study}/{arm}/seed{self.config['seed']}" + ("" if asked or stage == PRETRAIN else f" {stage}"),
            group=own,
            job_type=TRIAL if trial and stage == PRETRAIN else stage,
            tags=tuple(tag[:64] for tag in dict.fromkeys(tags)),
            config=self._config(stage),
            folder=identity.folder,
        )

    def _config(self, stage: str) -> dict[str, Any]:
        own = {"signature": self.identity.signature, "pretrain_signature": self.identity.pretrain, "stage": stage}
        return {**portable_config(self.config), **own, "versions": dict(versions())}


def _abandon(tracked: Tracked | None, error: BaseException) -> None:
    if tracked is None:
        return
    kind = type(error).__name__
    status = {"TrialPruned": "pruned", "Diverged": "diverged", "Stopped": "stopped"}.get(kind, "failed")
    if status == "pruned":
        tracked.tag(status)
    tracked.close(status, failed=status != "pruned")


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
