"""What a mixture is: which tasks stand beside the text, and how often.   T5 (arXiv 1910.10683), section 3.5.2"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from paribus.core.errors import UserError


@dataclass(frozen=True)
class Mixture(ABC):
    """Pre-training on tasks in words, beside the noise of the objective or in its place.

    `tasks` are names of the run's tasks, None: all of them; `denoising` says whether the objective's text is a source,
    too; `target_length` is the longest text of a task that is written, its end included.
    Raises UserError for a mixture of nothing.
    """

    tasks: Sequence[str] | None = None
    denoising: bool = True
    target_length: int = 64
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.tasks is not None and not self.tasks:
            raise UserError("mixture.tasks=[] names no task", "name some, null for all, or take mixture=none")

    def chosen(self, known: Sequence[str]) -> list[str]:
        """The tasks to mix, of those of the run, by the alphabet.

        Raises UserError for one that is not there, and where there is none.
        """
        if unknown := [name for name in self.tasks or [] if name not in known]:
            raise UserError(f"mixture.tasks: {unknown[0]} is no task of the run", f"add it: task=[{unknown[0]},...]")
        if not known:
            raise UserError("a mixture needs tasks, but task=none", "take task=docs_package, or mixture=none")
        return sorted(name for name in known if self.tasks is None or name in self.tasks)

    @abstractmethod
    def weights(self, sizes: Sequence[int]) -> list[float]:
        """How often each source of so many examples is read, up to a common factor."""

    def counts(self, sizes: Sequence[int]) -> list[int]:
        """Examples of each source in a pass of as many as all have together, at least one of each; by the method of
        largest remainders.
        """
        weights, total = self.weights(sizes), sum(sizes)
        exact = [total * weight / sum(weights) for weight in weights]
        counts = [int(number) for number in exact]
        rest = sorted(range(len(sizes)), key=lambda at: counts[at] - exact[at])[: total - sum(counts)]
        return [max(1, count + (at in rest)) for at, count in enumerate(counts)]
