"""Equal mixing.   T5 (arXiv 1910.10683), section 3.5.2"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paribus.tasks.mixtures.mixture import Mixture


@dataclass(frozen=True)
class Equal(Mixture):
    """Every source as often as any other."""

    def weights(self, sizes: Sequence[int]) -> list[float]:
        """See `Mixture.weights`."""
        return [1.0] * len(sizes)
