"""`paribus run`: every arm x seed of a sweep, or the trials of a search."""

from __future__ import annotations

import click

from paribus.core.arguments import Arguments, Verb
from paribus.core.console import say
from paribus.runs.wandb_tracker import refuse_agent
from paribus.sweeps.request import (
    ARMS,
    CONFIRM,
    OPTIONS,
    SEEDS,
    STUDY,
    SWEEP_OR_SEARCH,
    TUNE,
    UNTIL,
    Request,
    request_of,
    search_request_of,
)
from paribus.sweeps.sweep_file import names, search_names


def _list_sweeps(page: click.HelpFormatter) -> None:
    """The sweeps and the searches, for the help."""
    page.write_dl([("Sweeps:", ", ".join(names())), ("Searches:", ", ".join(search_names()))])


@click.command(
    cls=Verb,
    params=[SWEEP_OR_SEARCH, *OPTIONS, *UNTIL, CONFIRM],
    overrides=True,
    example="paribus run roberta_table1 scale=smoke slots=2",
    more=_list_sweeps,
)
def run(given: Arguments) -> int:
    """Train every arm and seed of a sweep, or the trials of a search. Finished runs are skipped, and interrupted
    ones resume.
    \f
    Returns 1 if a run failed. Raises UserError before any training step.
    """
    from paribus.reports.wandb_study import track_sweep
    from paribus.sweeps.lock import confirm, refuse_confirmed
    from paribus.sweeps.run import run_sweep
    from paribus.sweeps.until import run_until_decided

    refuse_agent()
    if (search := search_request_of(given)) is not None:
        from paribus.sweeps.search.worker import run_search

        return run_search(search)
    request = request_of(given)
    if given[CONFIRM]:
        given.refuse([ARMS, SEEDS, STUDY, TUNE, *UNTIL], f"and {CONFIRM.label} exclude each other", "the lock decides")
        request = confirm(request)
    else:
        refuse_confirmed(request)
    if (most := request.most) is None:
        status = run_sweep(request)
    else:
        status = run_until_decided(request, most, run_sweep, _judge_claims)
    track_sweep(request)
    say(f"next: `{request.command('status' if status else 'table')}`")
    return status


def _judge_claims(request: Request) -> list[dict[str, object]]:
    """The verdicts on a sweep's claims, from the runs that are done."""
    from paribus.core.jsonable import to_json
    from paribus.reports.tables.build import make_table

    table = make_table(request.sweep, request.scale, request.study, request.roots)
    claims: list[dict[str, object]] = to_json(table.claims)
    return claims
