"""`launcher=local`: slots of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from paribus.sweeps.launchers.launcher import Demand, Events
from paribus.sweeps.pool import Slot, Work, machine_slots, run_all


@dataclass(frozen=True)
class Local:
    """Divides cores and GPUs among slots."""

    elsewhere: ClassVar[bool] = False

    def open(self, demand: Demand) -> Slots:
        """Raises UserError for less than one slot, and for more processes a run than there are GPUs."""
        return Slots(machine_slots(demand.runs, demand.slots, demand.ranks))


class Slots:
    """A pool of processes."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.slots, self.size = slots, len(slots)
        self.threads: int | None = len(slots[0].cores)

    def run(self, queue: Sequence[Work], events: Events) -> None:
        """A free slot takes the next at once; processes that run end with this one."""

        def started(work: Work, slot: int) -> None:
            events.started(work, f"slot {slot + 1} of {self.size}")

        run_all(queue, self.slots, started=started, ended=events.ended, idle=events.idle)
