"""How often each of several sources is read, and which tasks pre-training reads in addition to its text.

The same law serves task mixtures (T5, arXiv 1910.10683, section 3.5.2) and several tasks on one encoder.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.data.sequences import Array


@dataclass(frozen=True)
class Sampling(ABC):
    """The shares of several sources by their sizes; `key`: of the config, in messages."""

    semantics: ClassVar[int] = 1
    key: ClassVar[str] = "sampling"

    @abstractmethod
    def weights(self, sizes: Sequence[int]) -> list[float]:
        """How often each source is read, up to a common factor, given the number of its examples."""

    def counts(self, sizes: Sequence[int]) -> list[int]:
        """Examples of each source in a pass of `sum(sizes)` examples, at least one of each (largest remainders)."""
        weights, total = self.weights(sizes), sum(sizes)
        exact = [total * weight / sum(weights) for weight in weights]
        counts = [int(number) for number in exact]
        rest = sorted(range(len(sizes)), key=lambda at: counts[at] - exact[at])[: total - sum(counts)]
        return [max(1, count + (at in rest)) for at, count in enumerate(counts)]


@dataclass(frozen=True)
class Equally(Sampling):
    """Every source is read as often as any other."""

    def weights(self, sizes: Sequence[int]) -> list[float]:
        return [1.0] * len(sizes)


@dataclass(frozen=True)
class BySize(Sampling):
    """A source counts its examples, but at most `limit` (None: no limit), to the power of 1 / `temperature`.

    Raises UserError for a limit or a temperature that is not positive.
    """

    limit: int | None = None
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise UserError(
                f"{self.key}.limit={self.limit} is out of range", "give a number of examples, or null for no limit"
            )
        if not self.temperature > 0:
            raise UserError(
                f"{self.key}.temperature={self.temperature} is out of range",
                "give a positive number; 1 is proportional",
            )

    def weights(self, sizes: Sequence[int]) -> list[float]:
        counted = [size if self.limit is None else min(size, self.limit) for size in sizes]
        return [(count / max(counted)) ** (1 / self.temperature) for count in counted]


def choose_tasks(asked: Sequence[str] | None, known: Sequence[str], key: str) -> list[str]:
    """The tasks that a mixture at `key` reads, of those of the run, sorted; None asks for all.

    Raises UserError if one of them is unknown.
    """
    if unknown := [name for name in asked or [] if name not in known]:
        raise UserError(f"{key}.tasks: {unknown[0]} is not a task of the run", f"add it: task=[{unknown[0]},...]")
    return sorted(name for name in known if asked is None or name in asked)


def deal(counts: Sequence[int], seed: int, epoch: int) -> Array:
    """int64 [sum(counts)]: the source of each turn of a pass in random order, drawn from (seed, epoch) alone."""
    random = np.random.Generator(np.random.Philox(key=np.array([seed, epoch], np.uint64)))
    return random.permutation(np.repeat(np.arange(len(counts)), counts))


@dataclass(frozen=True)
class Mixture(Sampling):
    """Tasks as text, in addition to the corrupted text of the objective or instead of it.

    Args:
        tasks: names of the run's tasks; None: all of them.
        denoising: whether the objective's text is one of the sources.
        target_length: most tokens of a target, its end included.

    Raises UserError for a mixture of nothing.
    """

    tasks: Sequence[str] | None = None
    denoising: bool = True
    target_length: int = field(default=64, metadata=within(1, 10**6))
    key: ClassVar[str] = "mixture"

    def __post_init__(self) -> None:
        if self.tasks is not None and not self.tasks:
            raise UserError("mixture.tasks=[] names no task", "name some, set null for all, or set mixture=none")

    def choose(self, known: Sequence[str]) -> list[str]:
        """The tasks to mix, of those of the run, sorted.

        Raises UserError if one of them is unknown, and if there is none.
        """
        if not known:
            raise UserError("a mixture needs tasks, but task=none", "set task=docs_package, or mixture=none")
        return choose_tasks(self.tasks, known, self.key)


@dataclass(frozen=True)
class Equal(Equally, Mixture):
    """Every source is read as often as any other."""


@dataclass(frozen=True)
class Proportional(BySize, Mixture):
    """Examples-proportional mixing; `limit` is T5's K."""

    def __post_init__(self) -> None:
        BySize.__post_init__(self)
        Mixture.__post_init__(self)
