"""Which tasks a pre-training reads beside its text, and how often.   T5 (arXiv 1910.10683), section 3.5.2"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from paribus.core.errors import UserError


@dataclass(frozen=True)
class Mixture(ABC):
    """Tasks in words, beside the corrupted text of the objective or in its place.

    Args:
        tasks: names of the run's tasks; None: all of them.
        denoising: whether the objective's text is one of the sources.
        target_length: most tokens of a target, its end included.

    Raises UserError for a mixture of nothing.
    """

    tasks: Sequence[str] | None = None
    denoising: bool = True
    target_length: int = 64
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.tasks is not None and not self.tasks:
            raise UserError("mixture.tasks=[] names no task", "name some, set null for all, or set mixture=none")

    def choose(self, known: Sequence[str]) -> list[str]:
        """The tasks to mix, of those of the run, sorted.

        Raises UserError if one of them is unknown, and if there is none.
        """
        if unknown := [name for name in self.tasks or [] if name not in known]:
            raise UserError(f"mixture.tasks: {unknown[0]} is not a task of the run", f"add it: task=[{unknown[0]},...]")
        if not known:
            raise UserError("a mixture needs tasks, but task=none", "set task=docs_package, or mixture=none")
        return sorted(name for name in known if self.tasks is None or name in self.tasks)

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
class Equal(Mixture):
    """Every source is read as often as any other."""

    def weights(self, sizes: Sequence[int]) -> list[float]:
        return [1.0] * len(sizes)


@dataclass(frozen=True)
class Proportional(Mixture):
    """Examples-proportional mixing: a source counts its examples, but at most `limit` (K; None: no limit), to the power
    of 1 / `temperature`.

    Raises UserError for a limit or a temperature that is not positive.
    """

    limit: int | None = None
    temperature: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.limit is not None and self.limit < 1:
            raise UserError(f"mixture.limit={self.limit}", "give a number of examples, or null for no limit")
        if not self.temperature > 0:
            raise UserError(f"mixture.temperature={self.temperature}", "give a positive number; 1 is proportional")

    def weights(self, sizes: Sequence[int]) -> list[float]:
        counted = [size if self.limit is None else min(size, self.limit) for size in sizes]
        return [(count / max(counted)) ** (1 / self.temperature) for count in counted]
