"""The state of a study as a table: live in a terminal, plain lines elsewhere. A sweep's table is arm by seed.

The state of every run of a sweep, read from the folders alone.
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
from paribus.runs import store
from paribus.runs.archive import RECORD, open_archive
from paribus.runs.record import Record
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
OVER = ("done", "found", "diverged", "failed")


@dataclass(frozen=True)
class Cell:
    """One run: its state, the share that is done (0 to 1), and {column: value} of what it was asked for."""

    state: str = "missing"
    share: float = 0.0
    values: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        mark = MARKS[self.state]
        if self.values:
            return " ".join([mark, *(write_value(*each) for each in self.values.items())])
        return f"{mark} {self.share:.0%}" if self.state in ("running", "stopped") and self.share else mark


class Sheet(ABC):
    """The display of a study: a title, a grid of cells, and lines below it."""

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
    def left(self) -> float | None:
        """Seconds until everything has ended, estimated from the mean duration of each arm, or of all that train; None
        before the first end."""

    def summarize(self, done: int, total: int, *states: str) -> str:
        """The summary, with the counts of `states` that occur."""
        counts = [f"{found} {state}" for state in states if (found := self.count(state))]
        left = self.left()
        return ", ".join([f"{done}/{total} done", *counts, *([f"about {duration(left)} left"] if left else [])])

    def table(self) -> Table:
        """The sheet as a rich table."""
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
        """The sheet as plain lines."""
        header, rows = self.grid()
        return "\n".join([self.title, *align([header, *rows]), *self.below()])


@dataclass
class Board(Sheet):
    """The runs of a sweep, arm by seed.

    Args:
        columns: those that the claims are about, of which cells show a loss and a score.
        slots: runs that train at once.
        cells: {label: Cell} of the runs.
        durations: {label: wall-clock seconds} of the runs that ended here.
        begun: {label: (seconds since the epoch, the share that was done)} when a running run started here.
        absent: {arm: why it cannot run}; such arms have no runs.
        live: the live display, while there is one.
    """

    title: str
    jobs: Sequence[Job]
    columns: Sequence[str]
    slots: int = 1
    cells: dict[str, Cell] = field(default_factory=dict)
    durations: dict[str, float] = field(default_factory=dict)
    begun: dict[str, tuple[float, float]] = field(default_factory=dict)
    live: Live | None = None
    absent: Mapping[str, str] = field(default_factory=dict)

    def set(self, label: str, state: str, share: float = 0.0, metrics: Mapping[str, Any] | None = None) -> None:
        """Replace one cell, by the metrics of its record if it has one, and update the live display."""
        self.cells[label] = Cell(state, share, choose_values(metrics or {}, self.columns))
        if self.live is not None:
            self.live.update(self.table())

    def note(self, text: str) -> None:
        """Print one line above the live display, or to stderr."""
        if self.live is not None:
            self.live.console.print(text, highlight=False, markup=False)
        else:
            say(text)

    def count(self, *states: str) -> int:
        return sum(self.cells.get(job.label, Cell()).state in states for job in self.jobs)

    def left(self) -> float | None:
        arms: dict[str, list[float]] = {}
        for label, seconds in self.durations.items():
            arms.setdefault(label.rpartition("/")[0], []).append(seconds)
        trained = [seconds for arm, found in arms.items() if arm != SCRATCH for seconds in found]
        open_ = [job for job in self.jobs if self.cells.get(job.label, Cell()).state not in OVER]
        if not all(arms.get(job.arm, trained) for job in open_):
            return None
        means = {job: statistics.fmean(arms.get(job.arm, trained)) for job in open_}
        running = [job for job in open_ if self.cells.get(job.label, Cell()).state == "running"]
        ends = [self._seconds_left(job.label, means.pop(job)) for job in running]
        ends += [0.0] * (self.slots - len(ends))
        heapify(ends)  # when each slot is free
        for job, mean in means.items():
            heapreplace(ends, ends[0] + mean * (1.0 - self.cells.get(job.label, Cell()).share))
        return max(ends, default=0.0)

    def _seconds_left(self, label: str, mean: float) -> float:
        """Of a running run. Its share tells of pre-training alone, so that time counts if its start is known."""
        if label not in self.begun:
            return mean * (1.0 - self.cells[label].share)
        start, share = self.begun[label]
        return max(0.0, mean * (1.0 - share) - (time.time() - start))

    def summary(self) -> str:
        done = self.count("done", "found")
        return self.summarize(done, len(self.jobs), "running", "stopped", "failed", "diverged")

    def grid(self) -> tuple[list[str], list[list[str]]]:
        """One row per arm, one column per seed; a cell is empty if its run was not requested."""
        seeds = list(dict.fromkeys(job.seed for job in self.jobs))
        labels = {(job.arm, job.seed): job.label for job in self.jobs}
        rows = [
            [arm, *(str(self.cells.get(labels[arm, seed], Cell())) if (arm, seed) in labels else "" for seed in seeds)]
            for arm in dict.fromkeys(job.arm for job in self.jobs)
        ]
        shown = dict.fromkeys(column for cell in self.cells.values() for column in cell.values)
        named = ", ".join(column.removesuffix("/accuracy") for column in shown or self.columns[:1])
        return [f"arm ({named})", *(f"seed {seed}" for seed in seeds)], rows

    def below(self) -> list[str]:
        return [self.summary(), *absent_lines(self.absent)]


def absent_lines(absent: Mapping[str, str]) -> list[str]:
    """One line for each arm that cannot run, {arm: why}."""
    return [f"– {arm} not run: {why}" for arm, why in absent.items()]


def show(look: Callable[[], Sheet]) -> None:
    """Print a sheet once; if stdout is a terminal, update it until nothing is running."""
    if not sys.stdout.isatty():
        print(look().text())
        return
    with watch_sheet(look, sys.stdout) as again, suppress(Stopped):
        while again().count("running"):
            time.sleep(0.2)


@contextmanager
def watch_sheet(look: Callable[[], Sheet], stream: TextIO) -> Iterator[Callable[[], Sheet]]:
    """Show a sheet live. Yields a function that refreshes it, at most once every two seconds, and returns it."""
    from rich.console import Console
    from rich.live import Live

    sheet, at = look(), time.monotonic()
    with Live(sheet.table(), console=Console(file=stream), auto_refresh=False, transient=not stream.isatty()) as shown:

        def again() -> Sheet:
            nonlocal sheet, at
            if time.monotonic() - at >= 2.0:
                sheet, at = look(), time.monotonic()
                shown.update(sheet.table(), refresh=True)
            return sheet

        yield again


@contextmanager
def show_live(board: Board) -> Iterator[None]:
    """Show the board during the block if stderr is a terminal."""
    if not watched():
        yield
        return
    from rich.console import Console
    from rich.live import Live

    with cover(), Live(board.table(), console=Console(file=sys.stderr), refresh_per_second=2) as board.live:
        try:
            yield
        finally:
            board.live.update(board.table())
    board.live = None


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines: the first column flush left, the others flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]


def choose_values(metrics: Mapping[str, Any], columns: Sequence[str]) -> dict[str, float]:
    """{column: value} of the first loss and the first score among these columns that a record's metrics have."""
    known = [column for column in columns if isinstance(metrics.get(column), int | float)]
    firsts = [next((column for column in known if is_task(column) == task), None) for task in (False, True)]
    return {column: float(metrics[column]) for column in firsts if column is not None}


def survey(request: Request) -> Board:
    """The board of a sweep: the runs of the last command's manifest if there is one, else the newest folders."""
    manifest = store.find_manifest(request.roots, request.named, request.scale)
    trials = store.find_manifest(request.roots, trial_study(request.named), request.scale) if request.tuned else None
    searched = _trials(request, trials, Tuning.from_json(manifest.tuning if manifest else {})) if request.tuned else {}
    absent = manifest.absent if manifest else {}
    listed = [*searched, *(job for job in _jobs(request, manifest) if job.arm not in absent)]
    board = Board(f"{request.named} at scale={request.scale}", listed, request.sweep.asked, absent=absent)
    board.cells |= {job.label: cell for job, cell in searched.items()}
    for job in listed:
        _survey(request, board, job, trials if job in searched else manifest)
    board.slots = max(1, board.count("running"))
    return board


def is_older(request: Request) -> bool:
    """Whether the last command ran another version of the sweep file."""
    manifest = store.find_manifest(request.roots, request.named, request.scale)
    return manifest is not None and manifest.sweep_hash != request.sweep.hash(request.scale)


def _survey(request: Request, board: Board, job: Job, manifest: store.Manifest | None) -> None:
    found = {folder: store.read_state(folder) for folder in _folders(request, job, manifest)}
    if manifest is None:  # which says which runs are of this scale
        found = {folder: own for folder, own in found.items() if _read_scale(folder, own[1]) == request.scale}
    steps = (manifest.steps if manifest else {}).get(job.arm)
    cells = [_cell(request, folder, *own, steps) for folder, own in found.items()]
    columns = request.sweep.asked
    cells += [
        Cell(one.status, 1.0, choose_values(one.metrics, columns)) for one in _find_archived(request, job, manifest)
    ]
    known = board.cells.get(job.label, Cell())
    board.cells[job.label] = next((cell for cell in cells if cell.state != "missing"), known)
    durations = [seconds for folder in found if (seconds := _seconds(folder))]
    board.durations |= {job.label: durations[0]} if durations else {}
    begun = [start for folder, (state, _) in found.items() if state == "running" and (start := _start(folder))]
    board.begun |= {job.label: (begun[0], 0.0)} if begun else {}


def _trials(request: Request, manifest: store.Manifest | None, tuning: Tuning) -> dict[Job, Cell]:
    """The trials of the search: those that its own manifest lists, and those that the study's manifest recorded."""
    study, tuned = trial_study(request.named), request.tuned
    column = tuned.on if tuned is not None else ""
    kept = {
        Job(study, trial_name(arm, trial.number), run.seed, ()): Cell(
            run.status, 1.0, {} if run.value is None else {column: run.value}
        )
        for arm, found in tuning.arms.items()
        for trial in found.trials
        for run in trial.runs
    }
    parts = [label.rpartition("/seed") for label in (manifest.runs if manifest else {})]
    return kept | {job: Cell() for arm, _, seed in parts if (job := Job(study, arm, int(seed), ())) not in kept}


def _jobs(request: Request, manifest: store.Manifest | None) -> list[Job]:
    """The runs of the sweep, and further ones of the last command."""
    runs = manifest.runs if manifest else {}
    sweep, arms, seeds = request.sweep, request.arms, request.seeds
    anchor = any(label.startswith(f"{SCRATCH}/") for label in runs)
    listed = jobs(sweep, request.scale, arms=arms, seeds=seeds, study=request.study, anchor=anchor)
    if arms is None and seeds is None:
        parts = [label.rpartition("/seed") for label in runs.keys() - {job.label for job in listed}]
        beside = [Job(request.named, arm, int(seed), ()) for arm, _, seed in parts if arm in (*sweep.arms, SCRATCH)]
        listed += sorted(beside, key=lambda job: (job.seed, job.arm))
    return listed


def _folders(request: Request, job: Job, manifest: store.Manifest | None) -> Iterator[Path]:
    signature = manifest.runs.get(job.label) if manifest else None
    for root in request.roots:
        found = (root / job.study / job.arm).glob(f"seed{job.seed}-{signature or '*'}")
        yield from sorted(found, key=lambda folder: (-folder.stat().st_mtime, folder.name))


def _find_archived(request: Request, job: Job, manifest: store.Manifest | None) -> Iterator[Record]:
    """The records of a run in archives."""
    signature = manifest.runs.get(job.label) if manifest else None
    for archive in (found for root in request.roots if (found := open_archive(root / job.study))):
        for run in archive.list_runs():
            if run.key.arm == job.arm and run.key.name.startswith(f"seed{job.seed}-{signature or ''}"):
                record, _ = store.read_stored(run)
                if record is not None and record.scale == request.scale:
                    yield record


def _cell(request: Request, folder: Path, state: str, record: Record | None, steps: int | None) -> Cell:
    share = min(1.0, store.read_last_step(folder) / steps) if steps else 0.0
    return Cell(state, share, choose_values(record.metrics if record else {}, request.sweep.asked))


def _read_scale(folder: Path, record: Record | None) -> str | None:
    return store.read_scale(folder) if record is None else record.scale


def _start(folder: Path) -> float | None:
    """When a run last started here, in seconds since the epoch."""
    marker = folder / "signature"
    return marker.stat().st_mtime if marker.is_file() else None


def _seconds(folder: Path) -> float | None:
    """Wall-clock seconds that a finished run took, from its last start to its record."""
    start, record = _start(folder), folder / RECORD
    return max(0.0, record.stat().st_mtime - start) if start is not None and record.is_file() else None
