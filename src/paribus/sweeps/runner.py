"""`paribus run SWEEP`: audit the arms, find the finished runs, train the others, name what failed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from paribus.core.build import build
from paribus.core.config import compose_launcher, plain
from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.processes import ranks_of
from paribus.runs import store
from paribus.runs.identity import Identity
from paribus.sweeps.board import Board, duration, live, metric_of, note
from paribus.sweeps.expand import Expanded, Plan, expand, planned_budgets
from paribus.sweeps.launchers.launcher import Demand, Events, Launcher
from paribus.sweeps.pool import Ended, Work, reason
from paribus.sweeps.request import Request
from paribus.sweeps.sweep import TRIAL, Job
from paribus.sweeps.tune import Tune
from paribus.sweeps.tuning import Tuning, adopted, check, search

REFRESH = 2.0  # seconds between looks at the curves

Train = Callable[[Any], Any]
Command = Callable[[Job], Sequence[str]]


def run_sweep(
    request: Request, *, plan: Plan | None = None, train: Train | None = None, command: Command | None = None
) -> int:
    """Do what is left of a sweep; the same request again finds everything done.

    Args:
        plan, train, command: how a config's budget is planned, how it is trained in this process, and the command
            line of a run as its own process; by default the real ones.

    Returns:
        0, or 1 where a run failed; those are named at the end and tried again the next time.

    Raises:
        UserError: where the audit, the budgets or the data forbid the sweep, before any training step.
    """
    launcher = build(compose_launcher(request.launcher))
    means = _Means(plan, train or _train, command or train_command, launcher)
    expanded = expand(request)
    if request.tuned is None:
        return _report(_worked(expanded, _steps(expanded, means), means))
    check(expanded, request.tuned)
    tuning = _searched(expanded, request.tuned, means)
    expanded = expand(request._replace(sweep=adopted(request.sweep, tuning)))
    return _report(_worked(expanded, _steps(expanded, means), means, tuning))


class _Means(NamedTuple):
    """How `run_sweep` plans and trains, and where."""

    plan: Plan | None
    train: Train
    command: Command
    launcher: Launcher


def _steps(expanded: Expanded, means: _Means) -> dict[str, int]:
    """{arm: planned optimizer steps}, after the check of the budgets."""
    return {arm: int(budget["steps"]) for arm, budget in planned_budgets(expanded, means.plan).items()}


def _searched(expanded: Expanded, tune: Tune, means: _Means) -> Tuning:
    """Tune every arm that was asked for."""
    steps = _steps(expanded, means)

    def do(opened: Expanded) -> dict[str, store.Record | None]:
        state = _worked(opened, {name: steps[name.rpartition(".")[0]] for name in opened.configs}, means)
        _report(state)
        return {job.label: _found(state, job) for job in opened.jobs}

    return search(expanded, tune, do)


def _worked(expanded: Expanded, steps: dict[str, int], means: _Means, tuning: Tuning | None = None) -> _State:
    """Do what is left of these runs, one that breaks does not end the others."""
    state = _enrolled(expanded, steps, tuning or {})
    if state.pending:
        with live(state.board):
            if expanded.request.scale == TRIAL and not means.launcher.elsewhere:
                _in_process(state, means.train)
            else:
                _in_pool(state, means)
    return state


@dataclass
class _State:
    """A sweep under way: `steps` {arm: planned}, `failures` {label: why}."""

    expanded: Expanded
    identities: dict[str, Identity]
    board: Board
    steps: dict[str, int]
    pending: list[Job] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def request(self) -> Request:
        return self.expanded.request


def _enrolled(expanded: Expanded, steps: dict[str, int], tuning: Tuning) -> _State:
    """Name every run, write the manifest, and find what is done."""
    request = expanded.request
    title = f"{request.named} at scale={request.scale}"
    board = Board(title, expanded.jobs, request.sweep.columns[0], absent=expanded.absent)
    state = _State(expanded, {job.label: expanded.identity(job) for job in expanded.everything}, board, steps)
    manifest = store.Manifest(
        sweep_hash=request.sweep.hash(request.scale),
        overrides=list(request.overrides),
        runs={label: identity.signature for label, identity in state.identities.items()},
        steps=steps,
        tuning=tuning,
        absent=dict(expanded.absent),
        until=request.until,
    )
    store.write_manifest(request.runs, request.named, request.scale, manifest)
    if request.keep and request.until is not None:
        _keep_manifest(request)
    for line in board.left_out():
        say(line)
    for job in expanded.jobs:
        if (record := _found(state, job)) is None:
            state.pending.append(job)
        else:
            board.set(job.label, state="found", metric=metric_of(record.get("metrics", {}), request.sweep.columns))
            say(f"✓ {job.label} found ({state.identities[job.label].signature[:6]}), skipped")
    return state


def _found(state: _State, job: Job) -> store.Record | None:
    """The record of a finished run: in its own folder, or among the kept results."""
    identity, request = state.identities[job.label], state.request
    kept = request.results / request.scale / job.study / job.arm / identity.folder.name
    own = store.finished(identity.folder, identity.signature)
    if own is not None and request.keep:
        _keep(state, identity)
    return own or store.finished(kept, identity.signature)


def _keep(state: _State, identity: Identity) -> None:
    request = state.request
    store.keep(identity.folder, request.results / request.scale, request.named)
    _keep_manifest(request)


def _keep_manifest(request: Request) -> None:
    root = request.results / request.scale
    if (manifest := store.read_manifest(request.runs, request.named, request.scale)) is not None:
        kept = manifest._replace(overrides=store.portable_overrides(manifest.overrides))
        store.write_manifest(root, request.named, request.scale, kept)


def _in_process(state: _State, train: Train) -> None:
    for job in state.pending:
        state.board.set(job.label, state="running")
        try:
            train(state.expanded.config(job))
            _after(state, job, "")
        except UserError as error:
            _after(state, job, str(error))
        except Exception as error:  # one run that breaks must not end the sweep
            _after(state, job, f"{type(error).__name__}: {error}")


def _train(config: Any) -> Any:
    from paribus.training.run import run as train

    return train(config)


def _in_pool(state: _State, means: _Means) -> None:
    request = state.request
    ranks = max(
        ranks_of(config.profile.ranks, config.profile.accelerator) for config in state.expanded.configs.values()
    )
    demand = Demand(len(state.expanded.jobs), request.slots, ranks, request.runs / request.named)
    pool = means.launcher.open(demand)
    state.board.slots = pool.size
    by_label = {job.label: job for job in state.pending}
    threads = None if pool.threads is None else max(1, pool.threads // ranks)
    work = [_work(state, job, means.command(job), threads) for job in state.pending]
    looked = time.monotonic()

    def started(begun: Work, where: str) -> None:
        state.board.set(begun.label, state="running")
        note(state.board, f"▶ {begun.label} in {where}")

    def waiting(stopped: Work) -> None:
        _look(state)
        state.board.set(stopped.label, state="stopped")
        note(state.board, f"‖ {stopped.label} waits in the queue again")

    def ended(end: Ended) -> None:
        state.board.durations.append(end.seconds)
        _look(state)
        _after(state, by_label[end.work.label], reason(end) if end.status else "", end)

    def idle() -> None:
        nonlocal looked
        if state.board.show is not None and time.monotonic() - looked > REFRESH:
            looked = time.monotonic()
            _look(state)

    pool.run(work, Events(started, waiting, ended, idle))


def train_command(job: Job) -> list[str]:
    """The command line of one run as a process of its own."""
    return [sys.executable, "-m", "paribus", "train", *job.overrides]


def _work(state: _State, job: Job, command: Sequence[str], threads: int | None) -> Work:
    config = plain(state.expanded.config(job))
    own = config["profile"]["threads"] is None and threads is not None
    if own:
        config["profile"]["threads"] = threads
    full = (*command, f"profile.threads={threads}") if own else tuple(command)
    return Work(job.label, full, state.identities[job.label].folder / "log.txt", config)


def _look(state: _State) -> None:
    """Read how far the running ones are."""
    for job in state.pending:
        cell = state.board.cells.get(job.label)
        if cell is not None and cell.state == "running" and (total := state.steps.get(job.arm)):
            state.board.set(job.label, share=min(1.0, store.last_step(state.identities[job.label].folder) / total))


def _after(state: _State, job: Job, error: str, end: Ended | None = None) -> None:
    """Say how a run ended; record it where it failed, keep it where it was asked for."""
    identity, request = state.identities[job.label], state.request
    record = store.finished(identity.folder, identity.signature)
    if record is None:
        _failed(state, job, error or "ended without a record of this signature; were files changed meanwhile?", end)
        return
    (identity.folder / store.FAILED).unlink(missing_ok=True)
    if request.keep:
        _keep(state, identity)
    value = metric_of(record.get("metrics", {}), request.sweep.columns)
    state.board.set(job.label, state=record["status"], metric=value)
    took = f" in {duration(end.seconds)}" if end else ""
    mark, shown = ("✓", "" if value is None else f": {value:.3f}") if record["status"] == "done" else ("✗", "")
    note(state.board, f"{mark} {job.label} {record['status']}{took}{shown} [{state.board.summary()}]")


def _failed(state: _State, job: Job, error: str, end: Ended | None) -> None:
    identity = state.identities[job.label]
    frame = {
        "signature": identity.signature,
        "study": job.study,
        "arm": job.arm,
        "seed": job.seed,
        "scale": state.request.scale,
        "sweep_hash": state.request.sweep.hash(state.request.scale),
        "data": identity.data,
    }
    store.write_failure(identity.folder, frame, error)
    state.failures[job.label] = error + (f" (log: {end.work.log})" if end else "")
    state.board.set(job.label, state="failed")
    note(state.board, f"✗ {job.label} failed: {state.failures[job.label]}")


def _report(state: _State) -> int:
    board = state.board
    fresh = board.count("done", "diverged")
    say(f"{board.title}: {board.summary()} ({board.count('found')} found, {fresh} new)")
    for label, error in state.failures.items():
        say(f"✗ {label} failed: {error}")
    if state.failures:
        say("the same command tries the failed runs again")
    return 1 if state.failures else 0
