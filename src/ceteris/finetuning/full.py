"""Fine-tuning every parameter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from ceteris.models.encoder import Encoder


@dataclass(frozen=True)
class Full:
    """Every parameter moves, at one rate (BERT, section 3.2).

    `shape` changes the loaded encoder before the optimizer is made: where adapters are put in or layers are frozen.
    """

    semantics: ClassVar[int] = 1

    def shape(self, encoder: Encoder) -> None:
        """Nothing is added or frozen."""
