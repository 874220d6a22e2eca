"""Files as strangers have them, and what their authors meant: for `analysis/check_reading.py` and a test.

Nothing here was written with a look at the code that reads such files.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from strange_case import StrangeFile
from strange_results import results_file
from strange_tables import label_file, question_file, tag_file
from strange_texts import corpus_file

KINDS: dict[str, tuple[Callable[[random.Random], StrangeFile], int]] = {  # kind: (its generator, its share)
    "results": (results_file, 8),
    "labels": (label_file, 4),
    "tags": (tag_file, 3),
    "questions": (question_file, 2),
    "corpus": (corpus_file, 3),
}


def strange_files(seed: int, count: int) -> Iterator[StrangeFile]:
    """`count` cases. Each is a function of the seed and its number."""
    makers, shares = zip(*KINDS.values(), strict=True)
    for number in range(count):
        draw = random.Random(f"{seed}/{number}")
        yield draw.choices(makers, shares)[0](draw)
