"""`paribus run SWEEP`: every arm x seed of a sweep, or the trials of a search; tells W&B how it stands."""

from __future__ import annotations

from paribus.commands.until import run_until_decided
from paribus.reporting.tracking.study import track_sweep
from paribus.sweeps.request import parse
from paribus.sweeps.runner import run_sweep
from paribus.sweeps.search import request as searches


def run(argv: list[str]) -> int:
    """The verb. Returns 1 where a run failed. Raises UserError for bad input, before any training step."""
    if (asked := searches.parse("run", argv)) is not None:
        return searches.run(asked)
    request = parse("run", argv)
    until = request.most
    status = run_sweep(request) if until is None else run_until_decided(request, until, run_sweep)
    track_sweep(request)
    return status
