"""`ceteris run SWEEP`: audit the arms, find the finished runs, train the others, name what failed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ceteris.console import say
from ceteris.errors import UserError
from ceteris.study import store
from ceteris.study.board import Board, duration, live, metric_of, note
from ceteris.study.expand import Expanded, Plan, expand, planned_budgets
from ceteris.study.identity import Identity
from ceteris.study.pool import Ended, Slot, Work, machine_slots, reason, run_all
from ceteris.study.request import Request, parse
from ceteris.study.search import Tuning, adopted, check, search
from ceteris.study.sweep import TRIAL, Job
from ceteris.study.tune import Tune

REFRESH = 40  # looks of the pool between looks at the curves

Train = Callable[[Any], Any]
Command = Callable[[Job], Sequence[str]]


def run(argv: list[str]) -> int:
    """The verb. Returns 1 where a run failed. Raises UserError for bad input, before any training step."""
    request = parse("run", argv)
    from ceteris.tables.until import run_until_decided  # these two build tables of the records that this module makes
    from ceteris.tracking.study import track_sweep

    until = request.most
    status = run_sweep(request) if until is None else run_until_decided(request, until, run_sweep)
    track_sweep(request)
    return status


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
    means = _Means(plan, train or _train, command or train_command)
    expanded = expand(request)
    if request.tuned is None:
        return _report(_worked(expanded, _steps(expanded, means), means))
    check(expanded, request.tuned)
    tuning = _searched(expanded, request.tuned, means)
    expanded = expand(request._replace(sweep=adopted(request.sweep, tuning)))
    return _report(_worked(expanded, _steps(expanded, means), means, tuning))


class _Means(NamedTuple):
    """How `run_sweep` plans and trains."""

    plan: Plan | None
    train: Train
    command: Command


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
            if expanded.request.scale == TRIAL:
                _in_process(state, means.train)
            else:
                _in_pool(state, means.command)
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
    """Name every run, write the roll, and find what is done."""
    request = expanded.request
    title = f"{request.named} at scale={request.scale}"
    board = Board(title, expanded.jobs, request.sweep.columns[0], absent=expanded.absent)
    state = _State(expanded, {job.label: expanded.identity(job) for job in expanded.everything}, board, steps)
    roll = store.Roll(
        sweep_hash=request.sweep.hash(request.scale),
        overrides=list(request.overrides),
        runs={label: identity.signature for label, identity in state.identities.items()},
        steps=steps,
        tuning=tuning,
        absent=dict(expanded.absent),
        until=request.until,
    )
    store.write_roll(request.runs, request.named, request.scale, roll)
    if request.keep and request.until is not None:
        _keep_roll(request)
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
    _keep_roll(request)


def _keep_roll(request: Request) -> None:
    root = request.results / request.scale
    if (roll := store.read_roll(request.runs, request.named, request.scale)) is not None:
        kept = roll._replace(overrides=store.portable_overrides(roll.overrides))
        store.write_roll(root, request.named, request.scale, kept)


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
    from ceteris.training.run import run as train

    return train(config)


def _in_pool(state: _State, command: Command) -> None:
    slots = machine_slots(len(state.expanded.jobs), state.request.slots)
    state.board.slots = len(slots)
    by_label = {job.label: job for job in state.pending}
    work = [_work(state, job, command(job), slots[0]) for job in state.pending]
    looks = 0

    def started(begun: Work, slot: int) -> None:
        state.board.set(begun.label, state="running")
        note(state.board, f"▶ {begun.label} in slot {slot + 1} of {len(slots)}")

    def ended(end: Ended) -> None:
        state.board.durations.append(end.seconds)
        _look(state)
        _after(state, by_label[end.work.label], reason(end) if end.status else "", end)

    def idle() -> None:
        nonlocal looks
        looks += 1
        if looks % REFRESH == 0 and state.board.show is not None:
            _look(state)

    run_all(work, slots, started=started, ended=ended, idle=idle)


def train_command(job: Job) -> list[str]:
    """The command line of one run as a process of its own."""
    return [sys.executable, "-m", "ceteris", "train", *job.overrides]


def _work(state: _State, job: Job, command: Sequence[str], slot: Slot) -> Work:
    given = state.expanded.configs[job.arm].profile.threads is not None
    threads = [] if given else [f"profile.threads={len(slot.cores)}"]
    return Work(job.label, (*command, *threads), state.identities[job.label].folder / "log.txt")


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
