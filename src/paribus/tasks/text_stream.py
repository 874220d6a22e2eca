"""Several tasks on the same text as one stream of pre-training steps, each of one task. Numpy only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paribus.corruption.collators.collator import Collator
from paribus.corruption.examples import Examples
from paribus.data.order import Block, Order, check_limits, check_passes
from paribus.data.sequences import Arrays
from paribus.tasks.mixtures import deal


@dataclass(frozen=True, eq=False)
class TextTasks:
    """The examples of K tasks: pass e of task k is pass e * K + k. A batch names its task.

    `counts`: the steps of each task in a cycle.
    """

    names: Sequence[str]
    each: Sequence[Examples]
    counts: Sequence[int]

    @property
    def collator(self) -> Collator:
        """Of the first task."""
        return self.each[0].collator

    @property
    def readings(self) -> int:
        return self.each[0].readings

    def size(self, epoch: int) -> int:
        own, examples = self._own(epoch)
        return examples.size(own)

    def tokens(self, epoch: int) -> int:
        own, examples = self._own(epoch)
        return examples.tokens(own)

    def lengths(self, epoch: int) -> NDArray[np.int32]:
        own, examples = self._own(epoch)
        return examples.lengths(own)

    def report(self, epoch: int) -> dict[str, float]:
        own, examples = self._own(epoch)
        return examples.report(own)

    def batch(self, epoch: int, rows: ArrayLike) -> Arrays:
        """The rows as the arrays of the task's collator, and its name as `task`."""
        own, examples = self._own(epoch)
        return {**examples.batch(own, rows), "task": self.names[epoch % len(self.each)]}

    def read(self, counts: Mapping[str, int]) -> dict[str, dict[str, float]]:
        """For each task, from the counts of a run: rows read, their share of all."""
        rows = {name: counts.get(f"{name}/sequences", 0) for name in self.names}
        return {name: {"sequences": n, "share": n / max(1, counts["sequences"])} for name, n in rows.items()}

    def _own(self, epoch: int) -> tuple[int, Examples]:
        own, place = divmod(epoch, len(self.each))
        return own, self.each[place]


@dataclass(frozen=True)
class TaskTurns(Order[TextTasks]):
    """Steps of several tasks, each cycle in random order.

    The steps of a task follow its own order in `plans`. A pass is as many tokens as one of the first task.
    """

    examples: TextTasks
    plans: Sequence[Order[Examples]]
    seed: int

    def blocks(self, step: int) -> list[Block]:
        counts = self.examples.counts
        cycle, at = divmod(step, sum(counts))
        dealt = deal(counts, self.seed, cycle)
        place = int(dealt[at])
        own = cycle * counts[place] + int(np.count_nonzero(dealt[:at] == place))
        return [(epoch * len(self.plans) + place, rows) for epoch, rows in self.plans[place].blocks(own)]

    def steps_for(self, max_steps: int | None, max_tokens: int | None, max_epochs: float | None) -> int:
        check_limits(max_steps, max_tokens, max_epochs)
        budgets = [] if max_tokens is None else [float(max_tokens)]
        check_passes(budgets, self.plans[0].examples)
        if max_epochs is not None:
            budgets.append(max_epochs * self.plans[0].examples.tokens(0))
        limits = [] if max_steps is None else [int(max_steps)]
        return min([*limits, *map(self._steps_to, budgets)])

    def _steps_to(self, tokens: float) -> int:
        """The steps until this number of tokens is read."""
        read = 0
        for step in count():
            if read >= tokens:
                return step
            read += sum(int(self.examples.lengths(epoch)[rows].sum()) for epoch, rows in self.blocks(step))
        raise AssertionError("the stream has no end")
