"""What `ceteris run` needs of a place where runs are started."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol

from ceteris.study.pool import Ended, Work


class Demand(NamedTuple):
    """What a sweep asks for. slots: runs side by side, None: as many as there is place for; ranks: processes that a run
    trains on; folder: where the launcher may keep files of its own.
    """

    runs: int
    slots: int | None
    ranks: int
    folder: Path


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
