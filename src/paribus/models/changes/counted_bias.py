"""An output bias that begins where training would first lead it: at the logarithms of how frequent words are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from paribus.models.change import Change

if TYPE_CHECKING:
    from paribus.models.encoder import Encoder


@dataclass(frozen=True)
class CountedBias(Change):
    """The output bias of heads on tokens begins at log((count + 1) / sum) of each entry's counts in the training text,
    so that with small logits the first predictions are those of the unigram model. It is trained as any bias.
    """

    sets: ClassVar[frozenset[str]] = frozenset({"output bias"})
    exact_at_places: ClassVar[bool] = True
    keeps_class: ClassVar[bool] = True

    def alter(self, encoder: Encoder) -> None:
        encoder.head_counts = True
