"""LAMB."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from paribus.optim.corrected import Corrected

if TYPE_CHECKING:
    from paribus.optim.moments import Moments


@dataclass(frozen=True)
class Lamb(Corrected):
    """AdamW whose update of a matrix has the norm of the matrix, for large batches (arXiv 1904.00962, algorithm 2).

    Biases and LayerNorms, which do not decay, move as AdamW's.
    """

    semantics: ClassVar[int] = 1

    def kind(self) -> type[Moments]:
        """See `Corrected.kind`."""
        from paribus.optim.moments import LambSteps

        return LambSteps
