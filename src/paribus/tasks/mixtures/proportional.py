"""Examples-proportional mixing and its temperature.   T5 (arXiv 1910.10683), section 3.5.2"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paribus.core.errors import UserError
from paribus.tasks.mixtures.mixture import Mixture


@dataclass(frozen=True)
class Proportional(Mixture):
    """A source counts as many examples as it has, but at most `limit` (K; None: no limit); the power 1 / `temperature`
    of that is how often it is read.

    Raises UserError for a limit or a temperature that is not positive.
    """

    limit: int | None = None
    temperature: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.limit is not None and self.limit < 1:
            raise UserError(f"mixture.limit={self.limit}", "give a number of examples, or null for no limit")
        if not self.temperature > 0:
            raise UserError(f"mixture.temperature={self.temperature}", "give a positive number; 1 = proportional")

    def weights(self, sizes: Sequence[int]) -> list[float]:
        """See `Mixture.weights`."""
        counted = [size if self.limit is None else min(size, self.limit) for size in sizes]
        return [(count / max(counted)) ** (1 / self.temperature) for count in counted]
