"""Which examples each optimizer step reads, and how many steps a budget buys. Numpy only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.core.settings import Batch


class Passes(Protocol):
    """Examples in passes, of which it is known how many there are and how long each is."""

    def size(self, epoch: int) -> int: ...

    def tokens(self, epoch: int) -> int: ...

    def lengths(self, epoch: int) -> NDArray[np.int32]: ...


Array = np.ndarray[Any, Any]
Block = tuple[int, Array]  # (epoch, rows)
Read = TypeVar("Read", bound=Passes)


@dataclass(frozen=True)
class StepPlan(Generic[Read]):
    """The endless stream of examples, epoch after epoch in a new order each, cut into steps.

    `by="sequences"`: every step holds `size` examples, also across the end of an epoch. `by="tokens"`: step s holds
    the examples that start in tokens [s, s + 1) x `tokens` of the stream. Both are pure functions of the step number.
    """

    examples: Read
    seed: int
    size: int
    tokens: int | None = None  # a step's tokens where steps are cut by tokens
    _cached: Any = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if self.size < 1:
            raise UserError(f"batch.size={self.size} is below 1", "give the sequences of an optimizer step")
        object.__setattr__(self, "_cached", lru_cache(maxsize=2)(self._epoch))

    def __reduce__(self) -> Any:
        return StepPlan, (self.examples, self.seed, self.size, self.tokens)

    def blocks(self, step: int) -> list[Block]:
        """The rows of one step, grouped by epoch (two groups where it crosses the end of an epoch)."""
        first, last = self._span(step)
        return [(epoch, self.order(epoch)[low:high]) for epoch, low, high in self._cut(first, last)]

    def order(self, epoch: int) -> Array:
        """The permutation of an epoch's examples, int64 [N], drawn from (seed, epoch) alone."""
        order_N: Array = self._cached(epoch)[0]
        return order_N

    def _epoch(self, epoch: int) -> tuple[Array, Array]:
        length_N = self.examples.lengths(epoch)
        random = np.random.Generator(np.random.Philox(key=np.array([self.seed, epoch], np.uint64)))
        order_N = random.permutation(len(length_N))
        return order_N, np.cumsum(length_N[order_N], dtype=np.int64)

    def _span(self, step: int) -> tuple[int, int]:
        if self.tokens is None:
            return step * self.size, (step + 1) * self.size
        return self.position_at(step * self.tokens), self.position_at((step + 1) * self.tokens)

    def position_at(self, tokens: int) -> int:
        """How many examples of the stream start before its first `tokens` tokens are read."""
        position, left = 0, tokens
        for epoch in count():
            whole = self.examples.tokens(epoch)
            if left <= whole:
                end_N = self._cached(epoch)[1]
                return position + int(np.searchsorted(end_N, left, side="left")) + (1 if left > 0 else 0)
            position, left = position + self.examples.size(epoch), left - whole
        raise AssertionError("the stream has no end")

    def _cut(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        base = 0
        for epoch in count():
            size = self.examples.size(epoch)
            low, high = max(first - base, 0), min(last - base, size)
            if low < high:
                yield epoch, low, high
            base += size
            if base >= last:
                return

    def steps_for(self, max_steps: int | None, max_tokens: int | None, max_epochs: float | None) -> int:
        """The optimizer steps that the budget buys; the first limit that is reached counts.

        Raises UserError where no limit is given or one is negative.
        """
        given = {"max_steps": max_steps, "max_tokens": max_tokens, "max_epochs": max_epochs}
        limits = {name: value for name, value in given.items() if value is not None}
        if not limits:
            raise UserError("trainer has no budget", "set trainer.max_steps, trainer.max_tokens or trainer.max_epochs")
        for name, value in limits.items():
            if value < 0:
                raise UserError(f"trainer.{name}={value} is negative", "give a budget of 0 or more")
        found = [] if max_steps is None else [int(max_steps)]
        if max_tokens is not None:
            found.append(self._steps_to(self.position_at(int(max_tokens)), int(max_tokens)))
        if max_epochs is not None:
            found.append(self._epoch_steps(max_epochs))
        return min(found)

    def _epoch_steps(self, epochs: float) -> int:
        whole = int(epochs)
        sizes = [self.examples.size(epoch) for epoch in range(whole)]
        ends = [self.examples.tokens(epoch) for epoch in range(whole)]
        position, tokens = sum(sizes), sum(ends)
        if part := epochs - whole:
            position += round(part * self.examples.size(whole))
            tokens += round(part * self.examples.tokens(whole))
        return self._steps_to(position, tokens)

    def _steps_to(self, position: int, tokens: int) -> int:
        return -(-tokens // self.tokens) if self.tokens is not None else -(-position // self.size)


def compose_plan(examples: Read, batch: Batch, length: int, seed: int, microbatch: int | None = None) -> StepPlan[Read]:
    """The plan of steps over the training examples; `length` is the model's input budget in tokens.

    Raises UserError for an unknown `batch.by`, and for sequences that do not divide into `profile.microbatch`.
    """
    if batch.by not in ("sequences", "tokens"):
        raise UserError(f"batch.by={batch.by} is unknown", "use sequences or tokens")
    if batch.by == "tokens":  # such a step has no fixed number of sequences; it is cut as it comes
        return StepPlan(examples, seed, batch.size, batch.size * length)
    if microbatch is not None and (microbatch < 1 or (microbatch < batch.size and batch.size % microbatch)):
        raise UserError(
            f"batch.size={batch.size} does not divide into profile.microbatch={microbatch}",
            f"give a divisor of {batch.size}, or profile.microbatch=null",
        )
    return StepPlan(examples, seed, batch.size)
