"""What `evaluation.attention=true` measures of the attention of a trained encoder: the means over its layers.

The value of a single layer has "_layer1" behind its name.
"""

from __future__ import annotations

from typing import Final

from paribus.verdict.metrics import METRICS, Metric

MEASURED: Final = (
    "attention_symmetry",
    "attention_diagonal",
    "attention_entropy",
    "attention_largest",
    "attention_variance",
)
_FIXED = ("corpus", "tokenizer", "evaluation", "input.length")

for _name in MEASURED:
    METRICS.add(Metric(_name, held_out=True, fixed=_FIXED, reason="they read other rows", whole=True))
