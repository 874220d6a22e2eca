"""`paribus run SWEEP`: audit the arms, skip the finished runs, train the others, and name what failed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.core.build import build
from paribus.core.config import compose_launcher, plain
from paribus.core.console import EVERY, duration, say
from paribus.core.errors import UserError
from paribus.core.files import check_room, read_end
from paribus.core.processes import ranks_of
from paribus.runs import store
from paribus.runs.folder import POINTER, find_finished, is_locked, read_last_step, shelf_of, write_failure
from paribus.runs.identity import Identity
from paribus.runs.manifest import Manifest, find_manifest, read_manifest, write_manifest
from paribus.runs.provenance import check_text
from paribus.runs.record import Record
from paribus.sweeps.expand import Expanded, Plan, expand, find_arm, plan_budgets
from paribus.sweeps.launchers.base import Demand, Ended, Events, Launcher, Work, failure_reason
from paribus.sweeps.launchers.base import train as train_here
from paribus.sweeps.plan import command_with, forecast_plateau
from paribus.sweeps.request import Request
from paribus.sweeps.status import SweepStatus, absent_lines, choose_values, show_live
from paribus.sweeps.sweep import SCRATCH, TRIAL, Job
from paribus.sweeps.tune_arms import apply_tuning, check_tuning, tune_arms
from paribus.sweeps.tuning import Tuning
from paribus.sweeps.universe_plan import foresee_settings
from paribus.verdict.controls import Course, describe_left, find_stuck, read_course
from paribus.verdict.metrics import find_metric, write_value

if TYPE_CHECKING:
    from paribus.training.description import Run

LOG = "log.txt"  # in a run's folder: what its process printed
REFRESH = 2.0  # seconds between two readings of the learning curves

Train = Callable[["Run"], object]
Command = Callable[[Job], Sequence[str]]


def run_sweep(
    request: Request, *, plan: Plan | None = None, train: Train | None = None, command: Command | None = None
) -> int:
    """Do what is left of a sweep. Repeating the request finds everything done.

    Args:
        plan: gives the planned budget of a config; by default the real one, as for the others.
        train: trains a run in this process.
        command: gives the command line that trains a run in its own process.

    Returns:
        0, or 1 if a run failed or diverged. Failed runs are named at the end; the same request tries them again.

    Raises:
        UserError: if the audit, the budgets or the data forbid the sweep, before any training step.
    """
    launcher, train, command = build(compose_launcher(request.launcher)), train or train_here, command or train_command
    expanded, tuning = expand(request), Tuning()
    for root in (request.runs, *([request.results / request.scale] if request.keep else [])):
        check_room(root / request.study_name / f"{request.scale}.json")
    if request.tuned is not None:
        check_tuning(expanded, request.tuned)
        budgets = plan_budgets(expanded, plan)

        def run_trials(trials: Expanded) -> dict[str, Record | None]:
            planned = {name: budgets[name.rpartition(".")[0]] for name in trials.configs}
            runs = _SweepRun(trials, planned, launcher, train, command, Tuning())
            runs.run()
            return {job.label: runs.find(job) for job in trials.jobs}

        tuning = tune_arms(expanded, request.tuned, run_trials)
        ends = dict[str, list[str]]()  # arms whose value lies at an end of the space that was searched
        for arm, tuned in tuning.arms.items():
            for said in tuned.at_end:
                ends.setdefault(said, []).append(arm)
        for said, arms in ends.items():
            how = f"To search further, stop this run and widen tune.space in {request.sweep.path}."
            say(f"{', '.join(arms)}: {said}. {how}")
        expanded = expand(request._replace(sweep=apply_tuning(request.sweep, tuning)))
    runs = _SweepRun(expanded, plan_budgets(expanded, plan), launcher, train, command, tuning)
    status = runs.run()
    if request.scale == TRIAL:
        return status
    shares = {arm: [one.share for one in of_arm if one.share is not None] for arm, of_arm in runs.courses.items()}
    if left := describe_left(shares):
        say(f"{left}.")
    asked = {request.sweep.baseline} if request.sweep.universes else runs.courses.keys()
    stuck = find_stuck({arm: [one.stuck for one in runs.courses[arm]] for arm in runs.courses if arm in asked})
    costs = [find_metric(column).cost for column in request.sweep.claimed_columns]
    if stuck and request.sweep.universes:
        say(f"{stuck}. These settings do not count, for any arm.")
    elif stuck and not all(costs):
        but = " but what they cost" if any(costs) else ""
        say(f"{stuck}. These arms decide nothing{but} until they are trained longer; `paribus table` says how long.")
    return status


def train_command(job: Job) -> list[str]:
    """The command line that trains one run in its own process."""
    return [sys.executable, "-m", "paribus", "train", *job.overrides]


class _SweepRun:
    """The runs of one expansion.

    `budgets`: {cell: what it is planned to use}; `steps`: {cell: planned optimizer steps}; `failures`: {label: why};
    `courses`: {arm: what the loss of each finished run on its own noise went through}.
    """

    def __init__(
        self,
        expanded: Expanded,
        budgets: Mapping[str, Mapping[str, Any]],
        launcher: Launcher,
        train: Train,
        command: Command,
        tuning: Tuning,
    ) -> None:
        self.expanded, self.budgets, self.tuning = expanded, budgets, tuning
        self.launcher, self.train, self.command = launcher, train, command
        self.request = request = expanded.request
        self.steps = {cell: int(budget["steps"]) for cell, budget in budgets.items()}
        title = f"{request.study_name} at scale={request.scale}"
        self.status = SweepStatus(title, expanded.jobs, request.sweep.claimed_columns, absent=expanded.absent)
        self.failures: dict[str, str] = {}
        self.courses: dict[str, list[Course]] = {job.arm: [] for job in expanded.jobs}
        stages = {job.label: expanded.stages(job) for job in expanded.everything}
        self.identities = {label: of_run[-1] for label, of_run in stages.items()}
        self.shelves = {
            label: {shelf_of(request.runs, stage.pretrain) for stage in of_run} for label, of_run in stages.items()
        }

    def run(self) -> int:
        """Write the manifest, skip what is done, train the rest. Returns 1 if a run failed, else 0.

        Raises UserError if the study holds another sweep or is of another text, or if a seed's runs would differ in
        precision.
        """
        request = self.request
        self._check_study()
        configs = {job.label: self.expanded.configs[self.expanded.cell(job)] for job in self.expanded.everything}
        corpora = {label: plain(config.corpus) for label, config in configs.items()}
        check_text(request.runs, request.study_name, request.scale, self.identities, corpora)
        manifest = Manifest(
            sweep_hash=request.sweep.hash(request.scale),
            overrides=list(request.overrides),
            runs={label: identity.signature for label, identity in self.identities.items()},
            steps=self.steps,
            tuning=self.tuning.to_json(),
            absent=dict(self.expanded.absent),
            until=request.until,
            settings=self.expanded.settings,
            lock=request.lock,
        )
        write_manifest(request.runs, request.study_name, request.scale, manifest)
        if request.keep and request.until is not None:
            self._keep_manifest()
        records = {job.label: record for job in self.expanded.jobs if (record := self.find(job)) is not None}
        pending = [job for job in self.expanded.jobs if job.label not in records]
        self._check_precision(pending, records.values())
        for line in absent_lines(self.expanded.absent):
            say(line)
        for job in self.expanded.jobs:
            if (record := records.get(job.label)) is not None:
                self._add_course(job, record)
                self.status.set(job.label, "found" if record.done else record.status, metrics=record.metrics)
                mark, why = ("✓", "") if record.done else ("✗", f" {record.status}")
                say(f"{mark} {job.label} found{why} ({self.identities[job.label].signature[:6]}), skipped")
        if pending:
            self._warn_of_plateau({job.arm for job in pending})
            with show_live(self.status):
                if request.scale == TRIAL and not self.launcher.remote:
                    self._run_here(pending)
                else:
                    self._run_in_pool(pending)
        return self._report()

    def _warn_of_plateau(self, arms: Collection[str]) -> None:
        """Say which of the arms will probably stay on the plateau of a trivial model."""
        request = self.request
        budgets = {cell: plan for cell, plan in self.budgets.items() if find_arm(cell) in arms}
        if request.sweep.universes:
            for line in foresee_settings(self.expanded, budgets):
                say(line)
            return
        forecast = forecast_plateau(self.expanded, budgets)
        if forecast is None or store.is_trial_study(request.study_name):
            return
        how = f": `{command}`" if (command := command_with(request, forecast.worst.longer)) else ""
        say(f"{forecast}. Train {forecast.worst.factor:.1f} times as long{how}")

    def _check_study(self) -> None:
        """Raise UserError if the study holds runs of other arms alone: writing its manifest would hide them."""
        request = self.request
        manifest = find_manifest(request.roots, request.study_name, request.scale)
        if manifest is None or store.is_trial_study(request.study_name):  # arms are searched one after another
            return
        held = manifest.arms() - {SCRATCH}
        if held and not held & set(self.expanded.arms):
            what = f"study={request.study_name} holds runs of another sweep ({', '.join(sorted(held))})"
            raise UserError(what, "choose another name with study=NAME")
        if manifest.sweep_hash != request.sweep.hash(request.scale):
            return
        for number, setting in self.expanded.settings.items():
            if (before := manifest.settings.get(number, setting)) != setting:
                what = f"setting {number} of {request.study_name} was drawn as {before} and is now {setting}"
                raise UserError(what, "use the SciPy of the first runs, or start over with study=NAME")

    def _check_precision(self, pending: Sequence[Job], records: Iterable[Record]) -> None:
        """Raise UserError if `auto` would train a run in another precision than the finished runs of its seed."""
        finished = {record.seed: record for record in records if record.done and record.precision}
        for job in pending:
            profile = self.expanded.config(job).profile
            if self.launcher.remote or job.seed not in finished or profile.precision != "auto":
                continue
            from paribus.training.profile import choose_precision  # imports torch

            here, other = choose_precision("auto", profile.accelerator), finished[job.seed]
            if here != other.precision:
                raise UserError(
                    f"{other.label} was trained in {other.precision}, and {job.label} would be trained in {here} here",
                    f"add profile.precision={other.precision} to train both alike, or profile.precision={here} to "
                    "mix them",
                )

    def find(self, job: Job) -> Record | None:
        """The record of a finished run: in its own folder, or among the kept results."""
        identity, request = self.identities[job.label], self.request
        record = find_finished(identity.folder, identity.signature)
        if record is not None and request.keep:
            self._keep(identity)
        return record or store.find_kept(request.results / request.scale, job.study, identity.folder)

    def _keep(self, identity: Identity) -> None:
        store.keep(identity.folder, self.request.results / self.request.scale, self.request.study_name)
        self._keep_manifest()

    def _keep_manifest(self) -> None:
        request = self.request
        if (manifest := read_manifest(request.runs, request.study_name, request.scale)) is not None:
            kept = manifest._replace(overrides=store.portable_overrides(manifest.overrides))
            write_manifest(request.results / request.scale, request.study_name, request.scale, kept)

    def _run_here(self, pending: Sequence[Job]) -> None:
        for job in pending:
            self.status.set(job.label, "running")
            error = ""
            try:
                self.train(self.expanded.run_of(job))
            except UserError as caught:
                error = str(caught)
            except Exception as caught:  # one run that breaks must not end the sweep
                error = f"{type(caught).__name__}: {caught}"
            self._finish(job, error)

    def _run_in_pool(self, pending: Sequence[Job]) -> None:
        request, jobs = self.request, {job.label: job for job in pending}
        ranks = max(
            ranks_of(config.profile.ranks, config.profile.accelerator) for config in self.expanded.configs.values()
        )
        demand = Demand(len(self.expanded.jobs), request.slots, ranks, request.runs / request.study_name)
        pool = self.launcher.open(demand)
        self.status.slots = pool.size
        threads = None if pool.threads is None else max(1, pool.threads // ranks)
        last_reading = time.monotonic()

        def started(work: Work, place: str) -> None:
            self.status.begun[work.label] = time.time(), self.status.cell(jobs[work.label]).share
            self.status.set(work.label, "running")
            self.status.note(f"▶ {work.label} started in {place}")

        def requeued(work: Work) -> None:
            self._read_progress(pending)
            self.status.set(work.label, "stopped", self.status.cells[work.label].share)
            self.status.note(f"‖ {work.label} is back in the queue")

        def ended(end: Ended) -> None:
            self.status.durations[end.work.label] = end.seconds
            self._read_progress(pending)
            self._finish(jobs[end.work.label], failure_reason(end) if end.status else "", end)

        def idle() -> None:
            nonlocal last_reading
            if time.monotonic() - last_reading > (EVERY if self.status.live is None else REFRESH):
                last_reading = time.monotonic()
                self._read_progress(pending)
                if self.status.live is None:
                    say(self._describe_running(pending))

        queue: list[Work] = []
        for job in pending:
            config, command = plain(self.expanded.config(job)), tuple(self.command(job))
            if config["profile"]["threads"] is None and threads is not None:
                config["profile"]["threads"] = threads
                command = (*command, f"profile.threads={threads}")
            ours = self.command is train_command  # a caller's own command may do anything
            log = self.identities[job.label].folder / LOG
            queue.append(Work(job.label, command, log, config if ours else None))
        pool.run(queue, Events(started, requeued, ended, idle, self._is_held))

    def _is_held(self, work: Work) -> bool:
        """Whether a run would wait: for itself in another process, or for what it shares with a running one."""
        identity = self.identities[work.label]
        running = [label for label, cell in self.status.cells.items() if cell.state == "running"]
        if is_locked(identity.folder):
            return True
        if any(self.identities[label].signature == identity.signature for label in running):
            return True
        begun = set[Path]().union(*(self.shelves[label] for label in running))
        return any(
            is_locked(shelf) or (shelf in begun and not (shelf / POINTER).is_file())
            for shelf in self.shelves[work.label]
        )

    def _read_progress(self, pending: Sequence[Job]) -> None:
        """Update the shares of the running cells from their learning curves."""
        for job in pending:
            if self.status.cell(job).state == "running" and (total := self.steps.get(self.expanded.cell(job))):
                step = read_last_step(self.identities[job.label].folder)
                self.status.set(job.label, "running", min(1.0, step / total))

    def _describe_running(self, pending: Sequence[Job]) -> str:
        """The phase of each running job and the state of all, as one line."""
        phases = []
        for job in pending:
            if self.status.cell(job).state == "running":  # the last progress report, see `training.callbacks.Bar`
                log = read_end(self.identities[job.label].folder / LOG)
                reports = [line for line in log if line.startswith(f"{job.label} ")]
                phases.append(reports[-1] if reports else f"{job.label} runs")
        return "; ".join([*phases, self.status.summary()])

    def _finish(self, job: Job, error: str, end: Ended | None = None) -> None:
        """Report how a run ended. Record a failure; keep a result if the request says so."""
        identity = self.identities[job.label]
        record = find_finished(identity.folder, identity.signature)
        if record is None:
            error = error or "no record with this signature; did a file change during the run?"
            failed = Record(
                signature=identity.signature,
                study=job.study,
                arm=job.arm,
                seed=job.seed,
                status="failed",
                scale=self.request.scale,
                sweep_hash=self.request.sweep.hash(self.request.scale),
                data=identity.data,
            )
            write_failure(identity.folder, failed, error)
            self.failures[job.label] = error + (f" (log: {end.work.log})" if end else "")
            self.status.set(job.label, "failed")
            self.status.note(f"✗ {job.label} failed: {self.failures[job.label]}")
            return
        self._add_course(job, record)
        if self.request.keep:
            self._keep(identity)
        self.status.set(job.label, record.status, metrics=record.metrics)
        took = f" in {duration(end.seconds)}" if end else ""
        values = choose_values(record.metrics, self.status.columns) if record.done else {}
        shown = ", ".join(f"{column} {write_value(column, value)}" for column, value in values.items())
        mark = "✓" if record.done else "✗"
        self.status.note(
            f"{mark} {job.label} {record.status}{took}{': ' if shown else ''}{shown} [{self.status.summary()}]"
        )

    def _add_course(self, job: Job, record: Record) -> None:
        if record.done and record.own:
            self.courses[job.arm].append(read_course(record.own))

    def _report(self) -> int:
        status = self.status
        new = status.count("done", "diverged")
        say(f"{status.title}: {status.summary()} ({status.count('found')} found, {new} new)")
        for label, error in self.failures.items():
            say(f"✗ {label} failed: {error}")
        if self.failures:
            say("Run the same command again to retry the failed runs.")
        if diverged := [job.label for job in status.jobs if status.cell(job).state == "diverged"]:
            say(f"✗ diverged and left out of the table's means: {', '.join(diverged)}")
        return 1 if self.failures or diverged else 0
