"""What noise came out, not what was asked for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ceteris.examples import Examples
from ceteris.text import Arrays

if TYPE_CHECKING:
    from ceteris.tokens.vocabulary import Vocabulary

ROWS = 256  # of a batch that is measured


@dataclass
class Realised:
    """Counts of batches, added up; a random token that equals the original counts as kept."""

    counts: Counter[str] = field(default_factory=Counter)

    def add(self, arrays: Arrays, vocabulary: Vocabulary) -> None:
        """Count a packed batch; without noise no token is shown as anything."""
        read_P = arrays["ids_BL"].reshape(-1)[arrays["slot_P"]]
        masked, kept = (int(np.count_nonzero(read_P == shown)) for shown in (vocabulary.mask, arrays["target_P"]))
        self.counts.update(arrays["counts"])
        if arrays["counts"]["noise"]:
            self.counts.update(masked=masked, kept=kept, randomised=len(read_P) - masked - kept)

    def rates(self) -> dict[str, float]:
        """Share of the text's tokens that are predicted (masking_rate) and that are noise (corruption_rate), of all
        tokens read that are predicted (predicted_share); of the predicted, the shares shown as mask, random
        token and itself; padding's share of positions; tokens a span of noise.
        """
        counts, predicted = self.counts, max(self.counts["predicted"], 1)
        return {
            "masking_rate": counts["predicted"] / max(counts["raw_tokens"], 1),
            "corruption_rate": counts["noise"] / max(counts["raw_tokens"], 1),
            "predicted_share": counts["predicted"] / max(counts["input_tokens"], 1),
            "mask": counts["masked"] / predicted,
            "random": counts["randomised"] / predicted,
            "keep": counts["kept"] / predicted,
            "padding_share": counts["padding"] / max(counts["padding"] + counts["input_tokens"], 1),
            "mean_span_length": counts["noise"] / max(counts["spans"], 1),
        }


def realised(examples: Examples, vocabulary: Vocabulary, most: int = 4096, epoch: int = 0) -> dict[str, float]:
    """`Realised.rates` of at most so many examples, evenly spaced over one pass, and what the pass's sampling gave."""
    size, total = examples.size(epoch), Realised()
    rows = np.unique(np.linspace(0, size - 1, min(size, most)).round().astype(np.int64))
    for at in range(0, len(rows), ROWS):
        total.add(examples.batch(epoch, rows[at : at + ROWS]), vocabulary)
    return {**total.rates(), **examples.report(epoch)}
