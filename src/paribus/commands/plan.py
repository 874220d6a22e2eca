"""`paribus plan`: what a sweep will cost, before anything is trained."""

from __future__ import annotations

import click

from paribus.core.arguments import Arguments, Verb
from paribus.sweeps.request import OPTIONS, SWEEP, request_of


@click.command(
    cls=Verb,
    params=[SWEEP, *OPTIONS],
    overrides=True,
    example="paribus plan roberta_table1 scale=cpu",
)
def plan(given: Arguments) -> int:
    """Print what a sweep will cost: runs, steps, tokens, FLOPs and time. A few steps of each arm give the time."""
    from paribus.sweeps.plan import report

    print(report(request_of(given)))
    return 0
