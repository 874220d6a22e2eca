"""A sweep made concrete: every arm composed and audited, every run named, before anything is trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paribus.core.build import unavailable
from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.runs.identity import Identity
from paribus.sweeps.control import audit, require_matched
from paribus.sweeps.request import Request
from paribus.sweeps.sweep import SCRATCH, TRIAL, Job, Sweep, arm_overrides, jobs, quoted

Compose = Callable[[list[str]], Any]
Plan = Callable[[Any], dict[str, Any]]


@dataclass(frozen=True)
class Expanded:
    """`jobs`: what was asked for; `configs`: {arm: config of any seed}, with the anchor; `audit`: as in table.json.

    `everything`: all runs that make the study at this scale, and what was asked for beside them; `absent`: {arm: why
    this machine cannot run it}; such arms are in neither.
    """

    request: Request
    jobs: list[Job]
    configs: Mapping[str, Any]
    audit: dict[str, Any]
    everything: Sequence[Job]
    absent: Mapping[str, str]

    def config(self, job: Job) -> Any:
        """The config of one run."""
        config = self.configs[job.arm].copy()
        config.seed = job.seed
        return config

    def identity(self, job: Job) -> Identity:
        """The signature and folder of one run. Raises UserError for a corpus or task that cannot be read."""
        from paribus.training.description import Run

        return Run.of(self.config(job)).identity


def expand(request: Request, composed: Compose = compose) -> Expanded:
    """Compose all arms, audit them, and list the runs.

    The anchor `from_scratch` is among them where the scale has tasks. Raises UserError as `audit` and `jobs` do, and
    where this machine lacks a component of the baseline or of all arms that were asked for.
    """
    sweep, scale = request.sweep, request.scale
    own = own_overrides(request)

    def config(arm: str) -> Any:
        named = [f"study={request.named}", f"arm={arm}"]
        return composed([*arm_overrides(sweep, scale, arm, own), *named])

    arms = {arm: config(arm) for arm in sweep.arms}
    audited = audit(sweep, arms)
    if anchored := bool(arms[sweep.baseline].get("tasks")):
        arms[SCRATCH] = config(SCRATCH)
    listed = jobs(sweep, scale, own, arms=request.arms, seeds=request.seeds, study=request.study, anchor=anchored)
    absent = _absent(sweep, arms, {job.arm for job in listed})
    present = {arm: own for arm, own in arms.items() if arm not in absent}
    every = [job for job in jobs(sweep, scale, own, study=request.study, anchor=anchored) if _settled(request, job)]
    everything = {job.label: job for job in (*every, *listed) if job.arm in present}
    asked = [job for job in listed if job.arm in present]
    return Expanded(request, asked, present, audited, list(everything.values()), absent)


def own_overrides(request: Request) -> tuple[str, ...]:
    """The user's overrides of every arm, and where the runs go."""
    return (*request.overrides, f"paths.runs={quoted(request.runs)}")


def _settled(request: Request, job: Job) -> bool:
    """Whether it is known what the run is: one of a tuned arm is, once the arm was searched."""
    source = request.sweep.baseline if job.arm == SCRATCH else job.arm
    return request.tuned is None or source in request.sweep.chosen


def _absent(sweep: Sweep, arms: Mapping[str, Any], asked: set[str]) -> dict[str, str]:
    absent = {arm: why for arm, config in arms.items() if (why := unavailable(config)) is not None}
    if asked <= absent.keys() or sweep.baseline in absent:
        arm = sweep.baseline if sweep.baseline in absent else min(asked)
        raise UserError(f"the arm {arm} cannot be run", absent[arm])
    return absent


def planned_budgets(expanded: Expanded, plan: Plan | None = None) -> dict[str, dict[str, Any]]:
    """{arm: planned budget}, the anchor included, after the check that the arms' budgets match.

    Prepares the data, once for all runs. Raises UserError for budgets more than 1 % apart, but at scale=test.
    """
    budgets = {arm: (plan or _planned)(config) for arm, config in expanded.configs.items()}
    if expanded.request.scale != TRIAL:
        require_matched(expanded.request.sweep, {arm: own for arm, own in budgets.items() if arm != SCRATCH})
    return budgets


def _planned(config: Any) -> dict[str, Any]:
    from paribus.training.budget import planned
    from paribus.training.description import Run

    return planned(Run.of(config))
