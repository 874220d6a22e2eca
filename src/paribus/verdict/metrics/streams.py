"""What `objective=stream_lm` measures of one model that is read in several ways (`objectives.stream_evaluations`).

All arms are asked for the same tokens, whatever they were trained on: text, tokenizer and evaluation may not vary.
"""

from __future__ import annotations

from typing import Final

from paribus.verdict.metrics import METRICS, Metric

LOSSES: Final = ("segments", "memory", "window", "init", "best", "quarter1", "quarter2", "quarter3", "quarter4")
CONTEXTS: Final = ("best_attention", "context_hardest", "context_harder", "context_all")
_FIXED = ("corpus", "tokenizer", "evaluation", "objective.slid_tokens")
_REASON = "they are not asked for the same tokens"

for _name in LOSSES:
    METRICS.add(Metric(f"{_name}_loss", lower_is_better=True, held_out=True, fixed=_FIXED, reason=_REASON, whole=True))
for _name in CONTEXTS:  # in tokens
    METRICS.add(Metric(_name, decimals=0, held_out=True, fixed=_FIXED, reason=_REASON, whole=True))
METRICS.add(Metric("window_queries", lower_is_better=True, decimals=0, held_out=True, cost=True, whole=True))
for _name in ("memory_speed", "window_speed"):  # predicted tokens per second, of the machine that measured
    METRICS.add(Metric(_name, decimals=0, held_out=True, cost=True, timed=True, whole=True))
METRICS.add(Metric("memory_speedup", decimals=1, held_out=True, cost=True, timed=True, whole=True))
