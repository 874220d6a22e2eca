"""The order of examples: which of them each optimizer step reads, and how many steps a budget allows. Numpy only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.core.settings import Batch
from paribus.data.sequences import Array, Flags

MOST_PASSES: Final = 10**6
Block = tuple[int, Array]  # (epoch, rows)


class StreamMarks(NamedTuple):
    """What a batch of a model with memory says besides the arrays of the collator.

    Attributes:
        begins_B: bool [B], True where a row does not continue the row that its place held in the step before.
    """

    begins_B: Flags


class Passes(Protocol):
    """Examples in passes, with known numbers and lengths."""

    def size(self, epoch: int) -> int: ...

    def tokens(self, epoch: int) -> int: ...

    def lengths(self, epoch: int) -> NDArray[np.int32]: ...


Read = TypeVar("Read", bound=Passes)


class Order(ABC, Generic[Read]):
    """Which examples each optimizer step reads, as a pure function of the step number.

    `StepPlan` shuffles each epoch. A different order, such as parallel streams for a model with memory, overrides
    `blocks` and `steps_for`; also `split`, so that rows keep their places, and `marks`, without which no memory is
    carried.
    """

    examples: Read

    @abstractmethod
    def blocks(self, step: int) -> list[Block]:
        """The rows of one step, grouped by epoch."""

    @abstractmethod
    def steps_for(self, max_steps: int | None, max_tokens: int | None, max_epochs: float | None) -> int:
        """The optimizer steps that the budget allows; the first limit that is reached counts.

        Raises UserError if no limit is given or one is negative.
        """

    def split(self, epoch: int, rows: Array, most: int | None) -> Iterator[Array]:
        """The rows in microbatches of at most `most`; by default rows of similar length are together."""
        if most is None or len(rows) <= most:
            if len(rows):
                yield rows
            return
        rows = rows[np.argsort(self.examples.lengths(epoch)[rows], kind="stable")]
        for at in range(0, len(rows), most):
            yield rows[at : at + most]

    def marks(self, epoch: int, rows: Array) -> StreamMarks | None:
        """Which of these rows begin anew; None if all of them do: then no memory is carried from step to step."""
        return None


def check_limits(max_steps: int | None, max_tokens: int | None, max_epochs: float | None) -> None:
    """Raise UserError if no limit is given or one is negative."""
    given = {"max_steps": max_steps, "max_tokens": max_tokens, "max_epochs": max_epochs}
    if all(value is None for value in given.values()):
        raise UserError(
            "trainer has no budget", "set trainer.max_steps, max_tokens, max_predictions, max_flops or max_epochs"
        )
    for name, value in given.items():
        if value is not None and value < 0:
            raise UserError(f"trainer.{name}={value} is negative", "give a budget of 0 or more")


def check_passes(budgets: Sequence[float], examples: Passes) -> None:
    """Raise UserError for a budget in tokens that would be a million passes over the examples."""
    for tokens in budgets:
        if tokens > MOST_PASSES * examples.tokens(0):
            cause = f"a budget of {tokens:.3g} tokens reads the training text more than a million times"
            raise UserError(cause, "lower trainer.max_tokens, max_predictions or max_flops")


@dataclass(frozen=True)
class StepPlan(Order[Read]):
    """An endless stream of examples, each epoch in a new random order, cut into steps.

    Without `tokens` every step holds `size` examples, even across the end of an epoch. With it step s holds the
    examples that start in tokens [s, s + 1) x `tokens` of the stream.
    Raises UserError for a size below 1.
    """

    examples: Read
    seed: int
    size: int
    tokens: int | None = None  # of a step, if steps are cut by tokens
    _cached: Any = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if self.size < 1:
            raise UserError(f"batch.size={self.size} is below 1", "give the sequences of an optimizer step")
        object.__setattr__(self, "_cached", lru_cache(maxsize=2)(self._shuffle))

    def __reduce__(self) -> Any:
        return StepPlan, (self.examples, self.seed, self.size, self.tokens)

    def blocks(self, step: int) -> list[Block]:
        """The rows of one step; two groups if it crosses the end of an epoch."""
        if self.tokens is None:
            first, last = step * self.size, (step + 1) * self.size
        else:
            first, last = self.position_at(step * self.tokens), self.position_at((step + 1) * self.tokens)
        blocks = []
        epoch = begin = 0  # `begin`: the position of the epoch's first example
        while begin < last:
            size = self.examples.size(epoch)
            low, high = max(first - begin, 0), min(last - begin, size)
            if low < high:
                blocks.append((epoch, self.order(epoch)[low:high]))
            epoch, begin = epoch + 1, begin + size
        return blocks

    def order(self, epoch: int) -> Array:
        """The permutation of an epoch's examples, int64 [N], drawn from (seed, epoch) alone."""
        order_N: Array = self._cached(epoch)[0]
        return order_N

    def _shuffle(self, epoch: int) -> tuple[Array, Array]:
        """(the order of an epoch's examples, tokens up to the end of each in this order)."""
        length_N = self.examples.lengths(epoch)
        random = np.random.Generator(np.random.Philox(key=np.array([self.seed, epoch], np.uint64)))
        order_N = random.permutation(len(length_N))
        return order_N, np.cumsum(length_N[order_N], dtype=np.int64)

    def position_at(self, tokens: int) -> int:
        """How many examples start in the first `tokens` tokens of the stream."""
        position, left = 0, tokens
        for epoch in count():
            whole = self.examples.tokens(epoch)
            if left <= whole:
                end_N = self._cached(epoch)[1]
                return position + int(np.searchsorted(end_N, left, side="left")) + (1 if left > 0 else 0)
            position, left = position + self.examples.size(epoch), left - whole
        raise AssertionError("the stream has no end")

    def steps_for(self, max_steps: int | None, max_tokens: int | None, max_epochs: float | None) -> int:
        check_limits(max_steps, max_tokens, max_epochs)
        limits = [] if max_steps is None else [int(max_steps)]
        if max_tokens is not None:
            check_passes([max_tokens], self.examples)
            limits.append(self._steps_to(self.position_at(int(max_tokens)), int(max_tokens)))
        if max_epochs is not None:
            whole = int(max_epochs)
            position = sum(self.examples.size(epoch) for epoch in range(whole))
            tokens = sum(self.examples.tokens(epoch) for epoch in range(whole))
            if part := max_epochs - whole:
                position += round(part * self.examples.size(whole))
                tokens += round(part * self.examples.tokens(whole))
            limits.append(self._steps_to(position, tokens))
        return min(limits)

    def _steps_to(self, position: int, tokens: int) -> int:
        return -(-tokens // self.tokens) if self.tokens is not None else -(-position // self.size)


Arrange = Callable[[Read, int, int, int | None], Order[Read]]  # from examples, seed, sequences and tokens of a step


def compose_order(
    examples: Read, arrange: Arrange[Read], batch: Batch, length: int, seed: int, microbatch: int | None = None
) -> Order[Read]:
    """The order of the training examples; `length` is the model's input budget in tokens.

    Raises UserError for an unknown `batch.by`, and for sequences that do not divide into `profile.microbatch`.
    """
    if batch.by not in ("sequences", "tokens"):
        raise UserError(f"batch.by={batch.by} is unknown", "use sequences or tokens")
    if batch.by == "tokens":  # the number of sequences varies from step to step
        return arrange(examples, seed, batch.size, batch.size * length)
    if microbatch is not None and (microbatch < 1 or (microbatch < batch.size and batch.size % microbatch)):
        raise UserError(
            f"batch.size={batch.size} does not divide into profile.microbatch={microbatch}",
            f"give a divisor of {batch.size}, or profile.microbatch=null",
        )
    return arrange(examples, seed, batch.size, None)
