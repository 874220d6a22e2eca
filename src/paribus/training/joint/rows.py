"""The rows of several tasks in one stream, for objectives with a head per task.

In a task mixture (`tasks.mixtures`) one text-to-text head answers every task, so its batches mix tasks and name none.
Here every batch holds rows of one task and names it. Both follow one law: `Sampling.counts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from paribus.data.sequences import Array, Arrays
from paribus.tasks.rows import TaskRows


@dataclass(frozen=True)
class NamedRows(TaskRows):
    """The rows of a task, whose batches name it as `task`.

    `slots` are further arrays, one entry per row, for losses beside the task's own (a second label, the logits of a
    teacher). A batch holds their entries under the same names; a loss that finds no slot in a batch counts nothing.
    """

    task: str
    rows: TaskRows
    slots: Mapping[str, Array] = field(default_factory=dict)

    @cached_property
    def length_N(self) -> Array:  # type: ignore[override]  # a dataclass field in other rows
        """Int64 [N]: tokens of each row."""
        return self.rows.length_N

    def batch(self, row_B: Array, multiple: int) -> Arrays:
        """The batch of the task, its name as `task`, and the slots."""
        slots = {name: values_N[row_B] for name, values_N in self.slots.items()}
        return {**self.rows.batch(row_B, multiple), "task": self.task, **slots}

    def split(self, row_B: Array) -> list[Array]:
        return self.rows.split(row_B)


@dataclass(frozen=True)
class JointRows(TaskRows):
    """The rows of several tasks, one task after the other. A step over rows of several tasks is `split` into batches
    of one task each, so that every loss has its own head and denominator.
    """

    tasks: Sequence[NamedRows]

    @cached_property
    def length_N(self) -> Array:  # type: ignore[override]  # a dataclass field in other rows
        """Int64 [N]: tokens of each row of all tasks."""
        return np.concatenate([rows.length_N for rows in self.tasks])

    def first(self, place: int) -> int:
        """The number of the first row of the task at that place."""
        return int(self._first_K[place])

    @cached_property
    def _first_K(self) -> Array:
        return np.cumsum([0, *(len(rows.length_N) for rows in self.tasks)])

    def batch(self, row_B: Array, multiple: int) -> Arrays:
        """The batch of the one task that the rows belong to."""
        place = int(np.searchsorted(self._first_K, row_B[0], side="right")) - 1
        return self.tasks[place].batch(row_B - self._first_K[place], multiple)

    def split(self, row_B: Array) -> list[Array]:
        batches: list[Array] = []
        for rows, first, end in zip(self.tasks, self._first_K[:-1], self._first_K[1:], strict=True):
            task_B = row_B[(row_B >= first) & (row_B < end)]
            batches += [part + first for part in rows.split(task_B - first)] if len(task_B) else []
        return batches
