"""What noise came out, not what was asked for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from paribus.corruption.examples import Collator, Stream
from paribus.data.text import Arrays

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary

ROWS = 256  # of a batch that is measured


@dataclass
class Measured:
    """Counts of batches of one layout, added up."""

    collator: Collator
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, arrays: Arrays, vocabulary: Vocabulary) -> None:
        """Count a packed batch."""
        self.counts.update(arrays["counts"])
        self.counts.update(self.collator.shown(arrays, vocabulary))

    def rates(self) -> dict[str, float]:
        """What the layout makes of the counts."""
        return self.collator.rates(self.counts)


def measured(examples: Stream, vocabulary: Vocabulary, most: int = 4096, epoch: int = 0) -> dict[str, float]:
    """`Measured.rates` of at most so many examples, evenly spaced over one pass, and what the pass's sampling gave."""
    size, total = examples.size(epoch), Measured(examples.collator)
    rows = np.unique(np.linspace(0, size - 1, min(size, most)).round().astype(np.int64))
    for at in range(0, len(rows), ROWS):
        total.add(examples.batch(epoch, rows[at : at + ROWS]), vocabulary)
    return {**total.rates(), **examples.report(epoch)}
