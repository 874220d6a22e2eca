"""Several tasks on the same text as one stream of pre-training steps, each of one task. Numpy only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
        turn, examples = self._locate(epoch)
        return examples.size(turn)

    def tokens(self, epoch: int) -> int:
        turn, examples = self._locate(epoch)
        return examples.tokens(turn)

    def lengths(self, epoch: int) -> NDArray[np.int32]:
        turn, examples = self._locate(epoch)
        return examples.lengths(turn)

    def report(self, epoch: int) -> dict[str, float]:
        turn, examples = self._locate(epoch)
        return examples.report(turn)

    def batch(self, epoch: int, rows: ArrayLike) -> Arrays:
        """The rows as the arrays of the task's collator, and its name as `task`."""
        turn, examples = self._locate(epoch)
        return {**examples.batch(turn, rows), "task": self.names[epoch % len(self.each)]}

    def read(self, counts: Mapping[str, int]) -> dict[str, dict[str, float]]:
        """For each task, from the counts of a run: rows read, their share of all."""
        rows = {name: counts.get(f"{name}/sequences", 0) for name in self.names}
        return {name: {"sequences": n, "share": n / max(1, counts["sequences"])} for name, n in rows.items()}

    def _locate(self, epoch: int) -> tuple[int, Examples]:
        """The pass over a task's examples that a pass over all tasks stands for, and these examples."""
        turn, place = divmod(epoch, len(self.each))
        return turn, self.each[place]


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
        turn = cycle * counts[place] + int(np.count_nonzero(dealt[:at] == place))
        return [(epoch * len(self.plans) + place, rows) for epoch, rows in self.plans[place].blocks(turn)]

    def steps_for(self, max_steps: int | None, max_tokens: int | None, max_epochs: float | None) -> int:
        check_limits(max_steps, max_tokens, max_epochs)
        budgets = [] if max_tokens is None else [float(max_tokens)]
        check_passes(budgets, self.plans[0].examples)
        if max_epochs is not None:
            budgets.append(max_epochs * self.plans[0].examples.tokens(0))
        limits = [] if max_steps is None else [int(max_steps)]
        return min([*limits, *map(self._steps_to_read, budgets)])

    def _steps_to_read(self, tokens: float) -> int:
        """The steps until this number of tokens is read."""
        read = step = 0
        while read < tokens:
            read += sum(int(self.examples.lengths(epoch)[rows].sum()) for epoch, rows in self.blocks(step))
            step += 1
        return step
