"""How many words of a task's evaluation texts a vocabulary of whole words lacks."""

from __future__ import annotations

import numpy as np

from paribus.core.console import say
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.tasks.rows import TaskRows

ROWS = 256  # that are looked at together


def measure_unknown(name: str, rows: TaskRows, vocabulary: Vocabulary) -> float:
    """The share of unknown words among the words of these rows, which is also printed."""
    count_V = np.zeros(vocabulary.size, np.int64)
    for at in range(0, len(rows.length_N), ROWS):
        chosen = np.arange(at, min(at + ROWS, len(rows.length_N)))
        count_V += np.bincount(rows.batch(chosen, 1)["ids_BL"].reshape(-1), minlength=vocabulary.size)
    frame = [number for number in vocabulary.specials if number != vocabulary.unk]
    count_V[frame] = 0
    share = float(count_V[vocabulary.unk] / max(1, count_V.sum()))
    say(f"task {name}: {share:.1%} of the words of its evaluation texts are not in the vocabulary")
    return share
