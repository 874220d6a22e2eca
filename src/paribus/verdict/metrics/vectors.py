"""What static word vectors are measured by: the losses of their objectives, which ask different questions, and how many
words of a task they do not know.
"""

from __future__ import annotations

from typing import Final

from paribus.verdict.metrics import FAVORS, METRICS, Metric

LOSSES: Final = ("skip_gram", "cbow", "fasttext", "glove")
_FIXED = ("corpus", "tokenizer", "evaluation", "objective")

for _name in LOSSES:
    METRICS.add(Metric(f"{_name}_loss", lower_is_better=True, held_out=True, fixed=_FIXED, reason=FAVORS, whole=True))
METRICS.add(Metric("unknown_words", lower_is_better=True, points=True, decimals=1))
