"""When masks are redrawn: a schedule maps the epoch (from 0) to the key of its noise.   RoBERTa, section 4.1"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from paribus.core.errors import UserError
from paribus.core.settings import within


class MaskSchedule(Protocol):
    """When noise is redrawn: the key of an epoch."""

    def __call__(self, epoch: int) -> int: ...


@dataclass(frozen=True)
class Static:
    """One mask forever."""

    semantics: ClassVar[int] = 1

    def __call__(self, epoch: int) -> int:
        return 0


@dataclass(frozen=True)
class Copies:
    """A number of masks of each example in turn: BERT's duplicated data, RoBERTa's static row.

    Raises UserError for fewer than one copy.
    """

    copies: int = field(metadata=within(0, 10**6))
    semantics: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not isinstance(self.copies, int) or self.copies < 1:
            raise UserError(
                f"masking.schedule.copies={self.copies} is out of range", "give a whole number of copies, at least 1"
            )

    def __call__(self, epoch: int) -> int:
        return epoch % self.copies


@dataclass(frozen=True)
class Dynamic:
    """A new mask in every epoch."""

    semantics: ClassVar[int] = 1

    def __call__(self, epoch: int) -> int:
        return epoch
