"""Expand a sweep: compose and audit every arm, and name every run, before anything is trained."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from paribus.core.build import unavailable
from paribus.core.config import compose, plain
from paribus.core.errors import UserError, located
from paribus.runs.identity import Identity
from paribus.sweeps.columns import check_filled, follow_columns
from paribus.sweeps.control import audit, require_matched
from paribus.sweeps.request import Request
from paribus.sweeps.sweep import SCRATCH, TRIAL, Job, arm_overrides, jobs, quote

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from paribus.training.description import Run

Plan = Callable[["DictConfig"], Mapping[str, Any]]


@dataclass(frozen=True)
class Expanded:
    """The runs of a request.

    Args:
        jobs: the requested runs.
        configs: {arm: config with any seed}, the anchor included.
        audit: as in table.json.
        everything: the requested runs and all others that make the study at this scale.
        absent: {arm: why this machine cannot run it}; such arms are in none of the others.
    """

    request: Request
    jobs: list[Job]
    configs: Mapping[str, DictConfig]
    audit: dict[str, Any]
    everything: Sequence[Job]
    absent: Mapping[str, str]
    _arms: dict[str, Run] = field(default_factory=dict, repr=False, compare=False)
    _runs: dict[str, Run] = field(default_factory=dict, repr=False, compare=False)

    def config(self, job: Job) -> DictConfig:
        config = self.configs[job.arm].copy()
        config.seed = job.seed
        return config

    def identity(self, job: Job) -> Identity:
        """The signature and folder of one run. Raises UserError if a corpus or a task cannot be read."""
        return self.run_of(job).identity

    def prepare(self, arms: Iterable[str]) -> None:
        """Read the corpora and tasks of arms here, so that processes that need them do not each do it.

        Raises UserError if one cannot be read.
        """
        for arm in arms:
            _ = self.run(arm).identity

    def stages(self, job: Job) -> list[Identity]:
        """The names of the stages of one run; the last are its own."""
        return [stage.identity for stage in self.run_of(job).chain]

    def run_of(self, job: Job) -> Run:
        """The run of a job, with the components of its arm. Raises UserError as `Run.of` does."""
        if job.label not in self._runs:
            from paribus.training.description import Run

            of_arm = self.run(job.arm)
            self._runs[job.label] = Run.of({**of_arm.config, "seed": job.seed}, like=of_arm)
        return self._runs[job.label]

    def run(self, arm: str) -> Run:
        """The run of an arm with the seed of its config, built once; arms share components that have equal settings."""
        from paribus.training.description import Run

        if arm not in self._arms:
            self._arms[arm] = Run.of(self.configs[arm], like=next(iter(self._arms.values()), None))
        return self._arms[arm]


def expand(request: Request) -> Expanded:
    """Compose all arms, audit them, and list the runs. If the scale has tasks, the anchor `from_scratch` is an arm. The
    tasks are those of the sweep's columns if nothing else chooses them.

    Raises UserError as `audit` and `jobs` do, and if this machine lacks a component of the baseline or of every
    requested arm.
    """
    sweep, scale = request.sweep, request.scale
    composed = [*arm_overrides(sweep, scale, sweep.baseline, user_overrides(request)), f"study={request.study_name}"]
    tasks = compose(composed).get("tasks") or ()
    chosen = follow_columns(sweep.columns, (*sweep.all_overrides, *request.overrides), tasks, scale == TRIAL)
    request = request._replace(overrides=(*chosen, *request.overrides))
    overrides = user_overrides(request)

    def config(arm: str) -> DictConfig:
        with located(f"arm {arm}"):
            return compose([*arm_overrides(sweep, scale, arm, overrides), f"study={request.study_name}", f"arm={arm}"])

    arms = {arm: config(arm) for arm in sweep.arms}
    audited = audit(sweep, arms)
    check_filled(sweep.path, sweep.columns, plain(arms[sweep.baseline].get("tasks")) or {}, scale == TRIAL)
    if anchored := bool(arms[sweep.baseline].get("tasks")):
        arms[SCRATCH] = config(SCRATCH)
    requested = jobs(
        sweep, scale, overrides, arms=request.arms, seeds=request.seeds, study=request.study, anchor=anchored
    )
    absent = {arm: why for arm, config in arms.items() if (why := unavailable(plain(config))) is not None}
    requested_arms = {job.arm for job in requested}
    if requested_arms <= absent.keys() or sweep.baseline in absent:
        arm = sweep.baseline if sweep.baseline in absent else min(requested_arms)
        raise UserError(f"the arm {arm} cannot be run", absent[arm])
    locked = request.seeds if request.lock else None  # a lock names all runs of its study
    whole = jobs(sweep, scale, overrides, seeds=locked, study=request.study, anchor=anchored)
    if request.tuned is not None:  # the config of a tuned arm is not known before its tuning
        whole = [job for job in whole if (sweep.baseline if job.arm == SCRATCH else job.arm) in sweep.chosen]
    everything = {job.label: job for job in (*whole, *requested) if job.arm not in absent}
    present = {arm: config for arm, config in arms.items() if arm not in absent}
    return Expanded(
        request, [job for job in requested if job.arm in present], present, audited, list(everything.values()), absent
    )


def user_overrides(request: Request) -> tuple[str, ...]:
    """The user's overrides of every arm, and the folder of the runs."""
    return (*request.overrides, f"paths.runs={quote(request.runs)}")


def plan_budgets(expanded: Expanded, plan: Plan | None = None) -> dict[str, Mapping[str, Any]]:
    """{arm: planned budget}, the anchor included, after the check that the arms' budgets match.

    Prepares the data once for all runs. Raises UserError if budgets differ by more than 1%, except at scale=test.
    """
    from paribus.training.budget import planned

    budgets = {
        arm: planned(expanded.run(arm)) if plan is None else plan(config) for arm, config in expanded.configs.items()
    }
    if expanded.request.scale != TRIAL:
        require_matched(expanded.request.sweep, {arm: budgets[arm] for arm in budgets if arm != SCRATCH})
    return budgets
