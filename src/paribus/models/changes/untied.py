"""An output table beside the word embeddings (Press and Wolf, arXiv 1608.05859, compare both)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from paribus.models.change import Change

if TYPE_CHECKING:
    from paribus.models.encoder import Encoder


@dataclass(frozen=True)
class Untied(Change):
    """Every head on tokens has an output table of its own, as large as the word embeddings, instead of these.

    The table belongs to its head, whose weights are not among those of the network.
    """

    sets: ClassVar[frozenset[str]] = frozenset({"output table"})
    exact_at_places: ClassVar[bool] = True
    keeps_class: ClassVar[bool] = True

    def alter(self, encoder: Encoder) -> None:
        encoder.head_untied = True
