"""AdamW with steps relative to the weights' size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from paribus.optim.corrected import Corrected

if TYPE_CHECKING:
    from paribus.optim.moments import Moments


@dataclass(frozen=True)
class AdamWRms(Corrected):
    """Each update is multiplied by the root mean square of its weight, at least 1e-3 (nanoT5, arXiv 2309.02373, section
    3.2). The decoupled weight decay is not.
    """

    semantics: ClassVar[int] = 1

    def kind(self) -> type[Moments]:
        """See `Corrected.kind`."""
        from paribus.optim.moments import ScaledAdamW

        return ScaledAdamW
