"""`paribus freeze`: fixes a sweep before its confirming runs."""

from __future__ import annotations

import click

from paribus.core.arguments import Arguments, Verb
from paribus.core.console import say
from paribus.sweeps import sweep_file
from paribus.sweeps.request import CACHE, MAX_SEEDS, RESULTS, RUNS, SCALE, SEEDS, SWEEP, UNTIL, UNTIL_DECIDED, Request


@click.command(
    cls=Verb,
    params=[SWEEP, SCALE, SEEDS, RUNS, RESULTS, CACHE, *UNTIL],
    example="paribus freeze roberta_table1 scale=cpu",
)
def freeze(given: Arguments) -> int:
    """Write a lock beside a sweep file: its arms, text, claims, margins, columns and rules, and seeds that no record of
    the study has used. `paribus run SWEEP --confirm` trains these seeds and refuses any change.
    """
    from paribus.reports.history import read_history
    from paribus.sweeps.lock import confirmed_study, place_of
    from paribus.sweeps.lock import freeze as write_lock

    if given[UNTIL_DECIDED]:
        given.refuse([SEEDS], f"and {UNTIL_DECIDED.label} exclude each other", "leave one of them out")
    else:
        given.refuse([MAX_SEEDS], f"needs {UNTIL_DECIDED.label}", f"add {UNTIL_DECIDED.label}, or give seeds=")
    request = Request(
        sweep=sweep_file.load(given[SWEEP]).at(given[SCALE]),
        scale=given[SCALE],
        overrides=tuple(given.config(CACHE)),
        seeds=given[SEEDS],
        runs=given[RUNS],
        results=given[RESULTS],
        most=given[MAX_SEEDS] if given[UNTIL_DECIDED] else None,
    )
    kept = request.results / request.scale
    studies = (request.sweep.study, confirmed_study(request.sweep.study))
    before = {seed for study in studies for one in read_history(kept / study) for seed in one.seeds}
    lock, new = write_lock(request, before)
    place, seeds = place_of(request.sweep.path, request.scale), ", ".join(map(str, lock.seeds))
    how = "frozen" if new else f"already frozen on {lock.frozen}"
    say(f"{how}: {place}, generation {lock.generation}, seeds {seeds}")
    say(f"next: commit {place.name}, then `{request.command('run')} --confirm`")
    return 0
