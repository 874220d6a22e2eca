"""The state of a study as a table: live in a terminal, plain lines elsewhere. A sweep's is arm by seed, read from the
folders alone.
"""

from __future__ import annotations

import statistics
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from heapq import heapify, heapreplace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from paribus.core.console import cover, duration, say, watched
from paribus.core.processes import Stopped
from paribus.runs.archive import open_archive
from paribus.runs.folder import RECORD, read_last_step, read_scale, read_state
from paribus.runs.manifest import Manifest, find_manifest
from paribus.runs.store import trial_study
from paribus.sweeps.request import Request
from paribus.sweeps.sweep import SCRATCH, Job, jobs
from paribus.sweeps.tuning import Tuning, trial_name
from paribus.verdict.metrics import is_task, write_value

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

MARKS = {
    "done": "✓", "found": "✓", "diverged": "✗", "failed": "✗", "running": "▶", "stopped": "‖", "missing": "·",
    "pruned": "✂", "stale": "‖", "waiting": "·",
}  # fmt: skip
STYLES = {"✓": "green", "✗": "red", "▶": "yellow", "‖": "yellow", "✂": "cyan"}
ENDED = ("done", "found", "diverged", "failed")


class StatusTable(ABC):
    """The runs of a sweep, or the trials of a search: a title, a grid of cells, and lines below it."""

    title: str

    @abstractmethod
    def grid(self) -> tuple[list[str], list[list[str]]]:
        """(header, rows)."""

    @abstractmethod
    def summary(self) -> str:
        """One line such as `6/12 done, 2 running, about 4 min left`."""

    @abstractmethod
    def below(self) -> list[str]:
        """The lines below the grid."""

    @abstractmethod
    def count(self, *states: str) -> int:
        """The number of runs or trials in any of these states."""

    @abstractmethod
    def seconds_left(self) -> float | None:
        """Seconds until everything has ended, estimated from the mean duration of each arm, or of all that train; None
        before the first end."""

    def summarize(self, done: int, total: int, *states: str) -> str:
        """The summary, with the counts of `states` that occur."""
        counts = [f"{count} {state}" for state in states if (count := self.count(state))]
        left = self.seconds_left()
        return ", ".join([f"{done}/{total} done", *counts, *([f"about {duration(left)} left"] if left else [])])

    def table(self) -> Table:
        """A rich table, for a terminal."""
        from rich.table import Table

        header, rows = self.grid()
        width = max(len(self.title), len(self.summary()))  # otherwise rich wraps them at the width of the cells
        table = Table(title=self.title, caption="\n".join(self.below()), min_width=min(width, 80))
        for at, name in enumerate(header):
            table.add_column(name, justify="left" if at == 0 else "right")
        for row in rows:
            table.add_row(row[0], *(f"[{STYLES.get(cell[:1], 'dim')}]{cell}[/]" for cell in row[1:]))
        return table

    def text(self) -> str:
        """Plain lines."""
        header, rows = self.grid()
        return "\n".join([self.title, *align([header, *rows]), *self.below()])


@dataclass(frozen=True)
class RunCell:
    """One run: its state, the share that is done (0 to 1), and {column: value} of what it was asked for."""

    state: str = "missing"
    share: float = 0.0
    values: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        mark = MARKS[self.state]
        if self.values:
            return " ".join([mark, *(write_value(*each) for each in self.values.items())])
        return f"{mark} {self.share:.0%}" if self.state in ("running", "stopped") and self.share else mark


@dataclass
class SweepStatus(StatusTable):
    """The runs of a sweep, arm by seed.

    Args:
        columns: those that the claims are about, of which cells show a loss and a score.
        slots: runs that train at once.
        cells: {label: RunCell} of the runs.
        durations: {label: wall-clock seconds} of the runs that ended here.
        begun: {label: (seconds since the epoch, the share that was done)} when a running run started here.
        absent: {arm: why it cannot run}; such arms have no runs.
        live: the live display, while there is one.
    """

    title: str
    jobs: Sequence[Job]
    columns: Sequence[str]
    slots: int = 1
    cells: dict[str, RunCell] = field(default_factory=dict)
    durations: dict[str, float] = field(default_factory=dict)
    begun: dict[str, tuple[float, float]] = field(default_factory=dict)
    live: Live | None = None
    absent: Mapping[str, str] = field(default_factory=dict)

    def cell(self, job: Job) -> RunCell:
        """The cell of a run; one that nothing is known of is missing."""
        return self.cells.get(job.label, RunCell())

    def set(self, label: str, state: str, share: float = 0.0, metrics: Mapping[str, Any] | None = None) -> None:
        """Replace one cell, by the metrics of its record if it has one, and update the live display."""
        self.cells[label] = RunCell(state, share, choose_values(metrics or {}, self.columns))
        if self.live is not None:
            self.live.update(self.table())

    def note(self, text: str) -> None:
        """Print one line above the live display, or to stderr."""
        if self.live is not None:
            self.live.console.print(text, highlight=False, markup=False)
        else:
            say(text)

    def count(self, *states: str) -> int:
        return sum(self.cell(job).state in states for job in self.jobs)

    def seconds_left(self) -> float | None:
        arms: dict[str, list[float]] = {}
        for label, seconds in self.durations.items():
            arms.setdefault(label.rpartition("/")[0], []).append(seconds)
        trained = [seconds for arm, taken in arms.items() if arm != SCRATCH for seconds in taken]
        unfinished = [job for job in self.jobs if self.cell(job).state not in ENDED]
        if not all(arms.get(job.arm, trained) for job in unfinished):
            return None
        means = {job: statistics.fmean(arms.get(job.arm, trained)) for job in unfinished}
        free_at = []  # when each slot is free
        for job in unfinished:
            if self.cell(job).state != "running":
                continue
            mean = means.pop(job)
            if job.label in self.begun:  # the share tells of pre-training alone, so that time counts instead
                start, share = self.begun[job.label]
                free_at.append(max(0.0, mean * (1.0 - share) - (time.time() - start)))
            else:
                free_at.append(mean * (1.0 - self.cell(job).share))
        free_at += [0.0] * (self.slots - len(free_at))
        heapify(free_at)
        for job, mean in means.items():
            heapreplace(free_at, free_at[0] + mean * (1.0 - self.cell(job).share))
        return max(free_at, default=0.0)

    def summary(self) -> str:
        done = self.count("done", "found")
        return self.summarize(done, len(self.jobs), "running", "stopped", "failed", "diverged")

    def grid(self) -> tuple[list[str], list[list[str]]]:
        """One row per arm, one column per seed; a cell is empty if its run was not requested."""
        seeds = list(dict.fromkeys(job.seed for job in self.jobs))
        texts = {(job.arm, job.seed): str(self.cell(job)) for job in self.jobs}
        arms = dict.fromkeys(job.arm for job in self.jobs)
        shown = dict.fromkeys(column for cell in self.cells.values() for column in cell.values)
        named = ", ".join(column.removesuffix("/accuracy") for column in shown or self.columns[:1])
        header = [f"arm ({named})", *(f"seed {seed}" for seed in seeds)]
        return header, [[arm, *(texts.get((arm, seed), "") for seed in seeds)] for arm in arms]

    def below(self) -> list[str]:
        return [self.summary(), *absent_lines(self.absent)]


def absent_lines(absent: Mapping[str, str]) -> list[str]:
    """One line for each arm that cannot run, {arm: why}."""
    return [f"– {arm} not run: {why}" for arm, why in absent.items()]


def choose_values(metrics: Mapping[str, Any], columns: Sequence[str]) -> dict[str, float]:
    """{column: value} of the first loss and the first score among these columns that a record's metrics have."""
    known = [column for column in columns if isinstance(metrics.get(column), int | float)]
    firsts = [next((column for column in known if is_task(column) == task), None) for task in (False, True)]
    return {column: float(metrics[column]) for column in firsts if column is not None}


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines: the first column flush left, the others flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]


@contextmanager
def show_live(status: SweepStatus) -> Iterator[None]:
    """Show a table, which the block changes, if stderr is a terminal."""
    if not watched():
        yield
        return
    from rich.console import Console
    from rich.live import Live

    with cover(), Live(status.table(), console=Console(file=sys.stderr), refresh_per_second=2) as status.live:
        try:
            yield
        finally:
            status.live.update(status.table())
    status.live = None


@contextmanager
def read_live(read: Callable[[], StatusTable], stream: TextIO) -> Iterator[Callable[[], StatusTable]]:
    """Show a table that is read again and again. Yields a function that reads it, at most once every two seconds, and
    returns it.
    """
    from rich.console import Console
    from rich.live import Live

    status, read_at = read(), time.monotonic()
    console = Console(file=stream)
    with Live(status.table(), console=console, auto_refresh=False, transient=not stream.isatty()) as shown:

        def read_again() -> StatusTable:
            nonlocal status, read_at
            if time.monotonic() - read_at >= 2.0:
                status, read_at = read(), time.monotonic()
                shown.update(status.table(), refresh=True)
            return status

        yield read_again


def print_status(read: Callable[[], StatusTable]) -> None:
    """Print a table once; if stdout is a terminal, read it again until nothing is running."""
    if not sys.stdout.isatty():
        print(read().text())
        return
    with read_live(read, sys.stdout) as read_again, suppress(Stopped):
        while read_again().count("running"):
            time.sleep(0.2)


def read_status(request: Request) -> SweepStatus:
    """The state of a sweep: the runs of the last command's manifest if there is one, else the newest folders."""
    manifest = find_manifest(request.roots, request.study_name, request.scale)
    absent = manifest.absent if manifest else {}
    trials_manifest, trials = None, dict[Job, RunCell]()
    if request.tuned is not None:
        trials_manifest = find_manifest(request.roots, trial_study(request.study_name), request.scale)
        trials = _list_trials(request, trials_manifest, Tuning.from_json(manifest.tuning if manifest else {}))
    listed = [*trials, *(job for job in _list_jobs(request, manifest) if job.arm not in absent)]
    status = SweepStatus(
        f"{request.study_name} at scale={request.scale}", listed, request.sweep.claimed_columns, absent=absent
    )
    status.cells |= {job.label: cell for job, cell in trials.items()}
    for job in listed:
        _read_run(request, status, job, trials_manifest if job in trials else manifest)
    status.slots = max(1, status.count("running"))
    return status


def ran_older_file(request: Request) -> bool:
    """Whether the last command ran another version of the sweep file."""
    manifest = find_manifest(request.roots, request.study_name, request.scale)
    return manifest is not None and manifest.sweep_hash != request.sweep.hash(request.scale)


def _list_trials(request: Request, manifest: Manifest | None, tuning: Tuning) -> dict[Job, RunCell]:
    """The trials of the search: those that its own manifest lists, and those that the study's manifest recorded."""
    study, column = trial_study(request.study_name), request.tuned.on if request.tuned is not None else ""
    trials = {
        Job(study, trial_name(arm, trial.number), run.seed, ()): RunCell(
            run.status, 1.0, {} if run.value is None else {column: run.value}
        )
        for arm, tuned in tuning.arms.items()
        for trial in tuned.trials
        for run in trial.runs
    }
    for label in manifest.runs if manifest else {}:
        arm, _, seed = label.rpartition("/seed")
        trials.setdefault(Job(study, arm, int(seed), ()), RunCell())
    return trials


def _list_jobs(request: Request, manifest: Manifest | None) -> list[Job]:
    """The runs of the sweep, and further ones of the last command."""
    runs = manifest.runs if manifest else {}
    sweep, arms, seeds = request.sweep, request.arms, request.seeds
    anchor = any(label.startswith(f"{SCRATCH}/") for label in runs)
    if seeds is None and manifest is not None and manifest.lock:  # a confirmed study has seeds of its own
        seeds = tuple(sorted({int(label.rpartition("/seed")[2]) for label in runs}))
    listed = jobs(sweep, request.scale, arms=arms, seeds=seeds, study=request.study, anchor=anchor)
    if arms is None and request.seeds is None:
        parts = [label.rpartition("/seed") for label in runs.keys() - {job.label for job in listed}]
        further = [
            Job(request.study_name, arm, int(seed), ()) for arm, _, seed in parts if arm in (*sweep.arms, SCRATCH)
        ]
        listed += sorted(further, key=lambda job: (job.seed, job.arm))
    return listed


def _read_run(request: Request, status: SweepStatus, job: Job, manifest: Manifest | None) -> None:
    """Fill the cell of one run: from the newest folder that holds something of it, else from an archive."""
    signature = manifest.runs.get(job.label) if manifest else None
    steps = manifest.steps.get(job.label, manifest.steps.get(job.arm)) if manifest else None
    cells = []
    name = f"seed{job.seed}-{signature or ''}"
    folders: list[Path] = []  # the newest first
    for root in request.roots:
        here = (root / job.study / job.arm).glob(name if signature else f"{name}*")
        folders += sorted(here, key=lambda folder: (-folder.stat().st_mtime, folder.name))
    archives = [archive for root in request.roots if (archive := open_archive(root / job.study))]
    for folder in folders:
        state, record = read_state(folder)
        if manifest is None:  # which says which runs are of this scale
            scale = read_scale(folder) if record is None else record.scale
            if scale != request.scale:
                continue
        share = min(1.0, read_last_step(folder) / steps) if steps else 0.0
        cells.append(RunCell(state, share, choose_values(record.metrics if record else {}, status.columns)))
        start, ended = _modified(folder / "signature"), _modified(folder / RECORD)
        if start is not None and ended is not None and ended > start:
            status.durations.setdefault(job.label, ended - start)
        if start and state == "running":
            status.begun.setdefault(job.label, (start, 0.0))
    archived = (run for archive in archives for run in archive.list_runs() if run.key.arm == job.arm)
    records = (run.read_record()[0] for run in archived if run.key.name.startswith(name))
    kept = [record for record in records if record is not None and record.scale == request.scale]
    cells += [RunCell(record.status, 1.0, choose_values(record.metrics, status.columns)) for record in kept]
    status.cells[job.label] = next((cell for cell in cells if cell.state != "missing"), status.cell(job))


def _modified(path: Path) -> float | None:
    """When a file was written, in seconds since the epoch; None if there is none. A run starts by its `signature`."""
    return path.stat().st_mtime if path.is_file() else None
