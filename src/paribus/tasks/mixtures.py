"""Task mixtures: which tasks pre-training reads in addition to its text, and how often.   T5 (arXiv 1910.10683),
section 3.5.2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from paribus.core.bounds import within
from paribus.core.errors import UserError
from paribus.tasks.sampling import BySize, Equally, Sampling, choose_tasks


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
