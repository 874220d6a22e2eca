"""Expand a sweep: compose and audit every arm, and name every run, before anything is trained."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
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
from paribus.sweeps.universe import Setting, find_key

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from paribus.training.description import Run

Plan = Callable[["DictConfig"], Mapping[str, Any]]


@dataclass(frozen=True)
class Expanded:
    """The runs of a request.

    Args:
        jobs: the requested runs.
        configs: {cell: config with any seed}, the anchor included. A cell is an arm; in a sweep with a universe, an arm
            in a setting: the label of its run.
        audit: as in table.json.
        everything: the requested runs and all others that make the study at this scale.
        absent: {arm: why this machine cannot run it}; such arms are in none of the others.
        settings: those of a universe, as in the manifest.
    """

    request: Request
    jobs: list[Job]
    configs: Mapping[str, DictConfig]
    audit: dict[str, Any]
    everything: Sequence[Job]
    absent: Mapping[str, str]
    settings: Mapping[str, Setting] = field(default_factory=dict)
    _cells: dict[str, Run] = field(default_factory=dict, repr=False, compare=False)
    _runs: dict[str, Run] = field(default_factory=dict, repr=False, compare=False)

    def cell(self, job: Job) -> str:
        """The cell of a run."""
        return job.label if self.request.sweep.universes else job.arm

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that have a config."""
        return tuple(dict.fromkeys(find_arm(cell) for cell in self.configs))

    def config(self, job: Job) -> DictConfig:
        config = self.configs[self.cell(job)].copy()
        config.seed = job.seed
        return config

    def identity(self, job: Job) -> Identity:
        """The signature and folder of one run. Raises UserError if a corpus or a task cannot be read."""
        return self.run_of(job).identity

    def prepare(self, cells: Iterable[str]) -> None:
        """Read the corpora and tasks of cells here, so that processes that need them do not each do it.

        Raises UserError if one cannot be read.
        """
        for cell in cells:
            _ = self.run(cell).identity

    def stages(self, job: Job) -> list[Identity]:
        """The names of the stages of one run; the last are its own."""
        return [stage.identity for stage in self.run_of(job).chain]

    def run_of(self, job: Job) -> Run:
        """The run of a job, with the components of its cell. Raises UserError as `Run.of` does."""
        if job.label not in self._runs:
            from paribus.training.description import Run

            of_cell = self.run(self.cell(job))
            self._runs[job.label] = Run.of({**of_cell.config, "seed": job.seed}, like=of_cell)
        return self._runs[job.label]

    def run(self, cell: str) -> Run:
        """The run of a cell with the seed of its config, built once; cells share components of equal settings."""
        from paribus.training.description import Run

        if cell not in self._cells:
            with located(cell) if self.request.sweep.universes else nullcontext():
                self._cells[cell] = Run.of(self.configs[cell], like=next(iter(self._cells.values()), None))
        return self._cells[cell]


def find_arm(cell: str) -> str:
    """The arm of a cell."""
    return cell.partition("/")[0]


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

    drawn = draw_settings(request)

    def config(arm: str, number: int | None) -> DictConfig:
        named = [f"study={request.study_name}", f"arm={arm}", *([] if number is None else [f"seed={number}"])]
        with located(f"arm {name_cell(arm, number)}"):
            return compose([*arm_overrides(sweep, scale, arm, overrides, drawn[number]), *named])

    cells: dict[str, DictConfig] = {}
    audits = []
    for number in drawn:
        arms = {arm: config(arm, number) for arm in sweep.arms}
        audits.append(audit(sweep, arms))
        check_filled(sweep.path, sweep.columns, plain(arms[sweep.baseline].get("tasks")) or {}, scale == TRIAL)
        if anchored := bool(arms[sweep.baseline].get("tasks")):
            arms[SCRATCH] = config(SCRATCH, number)
        cells |= {name_cell(arm, number): of_arm for arm, of_arm in arms.items()}
    requested = jobs(
        sweep, scale, overrides, arms=request.arms, seeds=request.seeds, study=request.study, anchor=anchored
    )
    missing = {cell: unavailable(plain(config)) for cell, config in cells.items()}
    absent = {find_arm(cell): why for cell, why in missing.items() if why is not None}
    requested_arms = {job.arm for job in requested}
    if requested_arms <= absent.keys() or sweep.baseline in absent:
        arm = sweep.baseline if sweep.baseline in absent else min(requested_arms)
        raise UserError(f"the arm {arm} cannot be run", absent[arm])
    locked = request.seeds if request.lock else None  # a lock names all runs of its study
    whole = jobs(sweep, scale, overrides, seeds=locked, study=request.study, anchor=anchored)
    if request.tuned is not None:  # the config of a tuned arm is not known before its tuning
        whole = [job for job in whole if (sweep.baseline if job.arm == SCRATCH else job.arm) in sweep.chosen]
    everything = {job.label: job for job in (*whole, *requested) if job.arm not in absent}
    present = {cell: config for cell, config in cells.items() if find_arm(cell) not in absent}
    runnable = [job for job in requested if job.arm not in absent]
    settings = {str(number): setting for number, setting in drawn.items() if setting is not None}
    return Expanded(request, runnable, present, audits[0], list(everything.values()), absent, settings)


def draw_settings(request: Request) -> dict[int | None, Setting | None]:
    """{number: setting} of the universe's settings and of further ones that are requested; without a universe, {None:
    None}. Raises UserError for an override of the command line that sets a factor.
    """
    universe = request.sweep.universe_at(request.scale)
    if universe is None:
        return {None: None}
    given = [f"{find_key(text)}." for text in request.overrides]
    if taken := [key for key in universe.factors if any(one.startswith(f"{find_key(key)}.") for one in given)]:
        cause = f"{taken[0]}= is a factor of the universe of {request.sweep.path}"
        raise UserError(cause, "remove it, or copy the file and take the factor out")
    numbers = sorted({*request.sweep.seeds_at(request.scale), *(request.seeds or ())})
    settings = universe.draw(numbers[-1] + 1)
    return {number: settings[number] for number in numbers}


def name_cell(arm: str, number: int | None) -> str:
    """The cell of an arm in the setting with this number, or of the arm alone."""
    return arm if number is None else f"{arm}/seed{number}"


def user_overrides(request: Request) -> tuple[str, ...]:
    """The user's overrides of every arm, and the folder of the runs."""
    return (*request.overrides, f"paths.runs={quote(request.runs)}")


def plan_budgets(expanded: Expanded, plan: Plan | None = None) -> dict[str, Mapping[str, Any]]:
    """{cell: planned budget}, the anchor included, after the check that the arms' budgets match, in each setting.

    Prepares the data once for all runs. Raises UserError if budgets differ by more than 1%, except at scale=test.
    """
    from paribus.training.budget import planned

    budgets = {
        cell: planned(expanded.run(cell)) if plan is None else plan(config) for cell, config in expanded.configs.items()
    }
    if expanded.request.scale != TRIAL:
        settings: dict[str, dict[str, Mapping[str, Any]]] = {}  # {number of a setting: {cell: budget}}
        for cell, budget in budgets.items():
            if find_arm(cell) != SCRATCH:
                settings.setdefault(cell.partition("/seed")[2], {})[cell] = budget
        for of_setting in settings.values():
            require_matched(expanded.request.sweep, of_setting)
    return budgets
