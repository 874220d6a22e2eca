"""What a token cost in pre-training, forward and backward pass and optimizer, and what a fine-tuning and its answers
cost (`finetune.costs=true`): time and memory as measured, FLOPs as counted.

Times are those of the machine that trained: compare runs of one machine that had it for themselves.
"""

from __future__ import annotations

from typing import Final

from paribus.verdict.metrics import METRICS, Measurements, Metric

MEASURED: Final = ("tuning_seconds", "tuning_megabytes", "answering_milliseconds", "answering_megabytes")
COUNTED: Final = "tuning_gigaflops"
TUNING: Final = (COUNTED, *MEASURED)  # of a fine-tuning, by the name of its task


def _read_microseconds(run: Measurements) -> float | None:
    """Per input token, at the median speed of the last stage's steps; None if no step was taken."""
    rate = run.speed.get("tokens_per_second", 0.0)
    return 1e6 / rate if rate else None


def _read_megaflops(run: Measurements) -> float | None:
    """Millions of floating-point operations per input token of all stages; None if no token was read."""
    tokens, flops = run.budget.get("input_tokens", 0.0), run.budget.get("flops")
    return flops / tokens / 1e6 if tokens and flops is not None else None


METRICS.add(Metric("microseconds_per_token", lower_is_better=True, decimals=1, cost=True, read=_read_microseconds))
METRICS.add(Metric("megaflops_per_token", lower_is_better=True, decimals=2, cost=True, read=_read_megaflops))
for _name in MEASURED:
    METRICS.add(Metric(_name, lower_is_better=True, decimals=1, held_out=True, cost=True, timed=True))
METRICS.add(Metric(COUNTED, lower_is_better=True, decimals=0, held_out=True, cost=True))
