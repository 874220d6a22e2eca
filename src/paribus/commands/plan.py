"""`paribus plan`: what a sweep will cost, before anything is trained."""

from __future__ import annotations

from paribus.core.arguments import Arguments, verb
from paribus.sweeps.request import OPTIONS, SWEEP, request_of


@verb(
    "Print what a sweep will cost: runs, steps, tokens, FLOPs and time. A few steps of each arm give the time.",
    SWEEP,
    *OPTIONS,
    overrides=True,
    example="paribus plan roberta_table1 scale=cpu",
)  # fmt: skip
def plan(given: Arguments) -> int:
    """Print the costs of each arm and of the sweep."""
    from paribus.sweeps.plan import report

    print(report(request_of(given)))
    return 0
