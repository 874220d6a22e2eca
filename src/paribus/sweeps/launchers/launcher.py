"""What `paribus run` needs of a place where runs are started."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol

from paribus.core.errors import UserError
from paribus.sweeps.pool import Ended, Work


class Demand(NamedTuple):
    """What a sweep asks for. slots: runs side by side, None: as many as there is place for; ranks: processes that a run
    trains on; folder: where the launcher may keep files of its own.
    """

    runs: int
    slots: int | None
    ranks: int
    folder: Path

    def size(self) -> int:
        """How many runs are side by side where there is place for all. Raises UserError for less than one slot."""
        if self.slots is not None and self.slots < 1:
            raise UserError(f"slots={self.slots} is below 1", "give a number of runs side by side, or auto")
        return min(self.runs, self.slots or self.runs)


class Events(NamedTuple):
    """What is called when a run starts (with the place, for the reader), loses its place and waits to go on, or ends;
    `idle` between looks.
    """

    started: Callable[[Work, str], None]
    waiting: Callable[[Work], None]
    ended: Callable[[Ended], None]
    idle: Callable[[], None]


class Pool(Protocol):
    """Places for runs. size: how many run side by side; threads: of the processor for one run, None: as it finds."""

    size: int
    threads: int | None

    def run(self, queue: Sequence[Work], events: Events) -> None:
        """Do everything in the queue; what fails stops nothing else. Raises KeyboardInterrupt on SIGINT."""


class Launcher(Protocol):
    """A choice of the group `launcher`. elsewhere: whether runs leave this machine."""

    elsewhere: ClassVar[bool]

    def open(self, demand: Demand) -> Pool:
        """Raises UserError where it cannot give what is asked for."""
