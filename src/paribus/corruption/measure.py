"""Noise statistics measured on real batches, not taken from the config."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from paribus.corruption.collators.collator import Collator
from paribus.corruption.examples import Stream
from paribus.data.text import Arrays
from paribus.data.tokens.vocabulary import Vocabulary

ROWS = 256  # rows of a batch that is measured


@dataclass
class Measured:
    """Counts of batches of one collator, added up."""

    collator: Collator
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, arrays: Arrays, vocabulary: Vocabulary) -> None:
        """Count a packed batch."""
        self.counts.update(arrays["counts"])
        self.counts.update(self.collator.count_shown(arrays, vocabulary))

    def rates(self) -> dict[str, float]:
        """The collator's rates from the counts so far."""
        return self.collator.rates(self.counts)


def measure(examples: Stream, vocabulary: Vocabulary, most: int = 4096, epoch: int = 0) -> dict[str, float]:
    """`Measured.rates` of at most `most` examples, evenly spaced over one pass, and statistics of its sampling."""
    size, total = examples.size(epoch), Measured(examples.collator)
    rows = np.unique(np.linspace(0, size - 1, min(size, most)).round().astype(np.int64))
    for at in range(0, len(rows), ROWS):
        total.add(examples.batch(epoch, rows[at : at + ROWS]), vocabulary)
    return {**total.rates(), **examples.report(epoch)}
