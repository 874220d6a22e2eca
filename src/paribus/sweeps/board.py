"""The state of a study as a table: live where someone watches, plain lines elsewhere. Of a sweep it is arm x seed."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TextIO

from paribus.core.console import say, watched
from paribus.sweeps.sweep import Job

if TYPE_CHECKING:
    from rich.table import Table

MARKS = {
    "done": "✓", "found": "✓", "diverged": "✗", "failed": "✗", "running": "▶", "stopped": "‖", "missing": "·",
    "pruned": "✂", "stale": "‖", "waiting": "·",
}  # fmt: skip
STYLES = {"✓": "green", "✗": "red", "▶": "yellow", "‖": "yellow", "✂": "cyan"}
OVER = ("done", "found", "diverged", "failed")


@dataclass(frozen=True)
class Cell:
    """One run: its state, the share that is done (0 to 1) and its metric where there is one."""

    state: str = "missing"
    share: float = 0.0
    metric: float | None = None

    def __str__(self) -> str:
        mark = MARKS[self.state]
        if self.metric is not None:
            return f"{mark} {self.metric:.3f}"
        return f"{mark} {self.share:.0%}" if self.state in ("running", "stopped") and self.share else mark


class Sheet(ABC):
    """What is shown of a study: a title, a grid of cells, and lines below it."""

    title: str

    @abstractmethod
    def grid(self) -> tuple[list[str], list[list[str]]]:
        """(header, rows)."""

    @abstractmethod
    def below(self) -> list[str]:
        """The lines below."""

    @abstractmethod
    def count(self, *states: str) -> int:
        """How many runs are in one of these states."""

    def table(self) -> Table:
        """As a rich table."""
        from rich.table import Table

        header, rows = self.grid()
        table = Table(title=self.title, caption="\n".join(self.below()))
        for at, name in enumerate(header):
            table.add_column(name, justify="left" if at == 0 else "right")
        for row in rows:
            table.add_row(row[0], *(f"[{STYLES.get(cell[:1], 'dim')}]{cell}[/]" for cell in row[1:]))
        return table

    def text(self) -> str:
        """As plain lines."""
        header, rows = self.grid()
        return "\n".join([self.title, *aligned([header, *rows]), *self.below()])


@dataclass
class Board(Sheet):
    """`cells` {label: Cell} of the runs; `durations`: wall-clock seconds of those that ended here.

    `absent`: {arm: why it is not run}; such arms have no runs.
    """

    title: str
    jobs: Sequence[Job]
    metric: str
    slots: int = 1
    cells: dict[str, Cell] = field(default_factory=dict)
    durations: list[float] = field(default_factory=list)
    show: Any = None
    absent: Mapping[str, str] = field(default_factory=dict)

    def set(self, label: str, **changes: Any) -> None:
        """Change one cell and what is shown."""
        self.cells[label] = replace(self.cells.get(label, Cell()), **changes)
        if self.show is not None:
            self.show.update(self.table())

    def count(self, *states: str) -> int:
        return sum(self.cells.get(job.label, Cell()).state in states for job in self.jobs)

    def left(self) -> float | None:
        """Seconds until all is done, from the mean duration of the runs that ended here; None before the first."""
        if not self.durations:
            return None
        open_ = [cell for job in self.jobs if (cell := self.cells.get(job.label, Cell())).state not in OVER]
        mean = sum(self.durations) / len(self.durations)
        return mean * sum(1.0 - cell.share for cell in open_) / max(1, min(self.slots, len(open_)))

    def summary(self) -> str:
        """Such as `6/12 done, 2 running, 1 failed, about 4 min left`."""
        parts = [f"{self.count('done', 'found', 'diverged')}/{len(self.jobs)} done"]
        others = ("running", "stopped", "failed", "diverged")
        parts += [f"{found} {state}" for state in others if (found := self.count(state))]
        left = self.left()
        return ", ".join([*parts, *([f"about {duration(left)} left"] if left else [])])

    def grid(self) -> tuple[list[str], list[list[str]]]:
        """An arm a row, a seed a column; empty where a run was not asked for."""
        seeds = list(dict.fromkeys(job.seed for job in self.jobs))
        asked = {(job.arm, job.seed): job.label for job in self.jobs}
        rows = [
            [arm, *(str(self.cells.get(asked[arm, seed], Cell())) if (arm, seed) in asked else "" for seed in seeds)]
            for arm in dict.fromkeys(job.arm for job in self.jobs)
        ]
        return [f"arm ({self.metric})", *(f"seed {seed}" for seed in seeds)], rows

    def below(self) -> list[str]:
        return [self.summary(), *self.left_out()]

    def left_out(self) -> list[str]:
        """A line for each arm that is not run."""
        return [f"– {arm} not run: {why}" for arm, why in self.absent.items()]


def show(look: Callable[[], Sheet]) -> None:
    """Print what is there; where stdout is a terminal, live for as long as something is running."""
    if not sys.stdout.isatty():
        print(look().text())
        return
    with watching(look, sys.stdout) as again, suppress(KeyboardInterrupt):
        while again().count("running"):
            time.sleep(0.2)


@contextmanager
def watching(look: Callable[[], Sheet], stream: TextIO, every: float = 2.0) -> Iterator[Callable[[], Sheet]]:
    """Yields what looks again, at most once in so many seconds, and shows it where the stream is a terminal."""
    from rich.console import Console
    from rich.live import Live

    sheet, at = look(), time.monotonic()
    with Live(sheet.table(), console=Console(file=stream), auto_refresh=False, transient=not stream.isatty()) as shown:

        def again() -> Sheet:
            nonlocal sheet, at
            if time.monotonic() - at >= every:
                sheet, at = look(), time.monotonic()
                shown.update(sheet.table(), refresh=True)
            return sheet

        yield again


@contextmanager
def live(board: Board) -> Iterator[None]:
    """Show the board while the block runs, where stderr is a terminal."""
    if not watched():
        yield
        return
    from rich.console import Console
    from rich.live import Live

    with Live(board.table(), console=Console(file=sys.stderr), refresh_per_second=2) as board.show:
        try:
            yield
        finally:
            board.show.update(board.table())
    board.show = None


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines: the first column flush left, the others flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]


def note(board: Board, text: str) -> None:
    """One line for the reader, above the live table or in the log."""
    if board.show is not None:
        board.show.console.print(text, highlight=False, markup=False)
    else:
        say(text)


def duration(seconds: float) -> str:
    """Such as `43 s`, `12 min`, `3.5 h`, `12 days`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.0f} days"


def metric_of(metrics: Mapping[str, Any], columns: Sequence[str]) -> float | None:
    """The first of the table's columns that a record has."""
    return next((float(metrics[name]) for name in columns if isinstance(metrics.get(name), int | float)), None)
