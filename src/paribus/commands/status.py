"""`paribus status`: the state of every run of a sweep, or of every trial of a search."""

from __future__ import annotations

from functools import partial

import click

from paribus.core.arguments import Arguments, Verb
from paribus.core.console import say
from paribus.sweeps.request import OPTIONS, request_of
from paribus.sweeps.search import request as searches


@click.command(
    cls=Verb,
    params=[searches.SWEEP_OR_SEARCH, *OPTIONS],
    overrides=True,
    example="paribus status roberta_table1 scale=cpu",
)
def status(given: Arguments) -> int:
    """Show the state of every run of a sweep, or of every trial of a search. In a terminal, the view is live. Name
    a search by its name or its folder.
    """
    from paribus.sweeps.status import is_older, show, survey

    search = searches.request_of(given, folders=True)
    if search is not None:
        show(searches.look(search))
        return 0
    show(partial(survey, request := request_of(given)))
    if is_older(request):
        say("These runs were made with an older version of the sweep file; `paribus run` repeats those that changed")
    return 0
