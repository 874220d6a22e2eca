"""`paribus status`: the state of every run of a sweep, or of every trial of a search."""

from __future__ import annotations

from functools import partial

import click

from paribus.core.arguments import Arguments, Verb
from paribus.core.config import compose, plain
from paribus.core.config_errors import check_keys
from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.sweeps.request import OPTIONS, SWEEP_OR_SEARCH, request_of, search_request_of
from paribus.sweeps.sweep import arm_overrides


@click.command(
    cls=Verb,
    params=[SWEEP_OR_SEARCH, *OPTIONS],
    overrides=True,
    example="paribus status roberta_table1 scale=cpu",
)
def status(given: Arguments) -> int:
    """Show the state of every run of a sweep, or of every trial of a search. In a terminal, the view is live. Name
    a search by its name or its folder.
    """
    from paribus.sweeps.status import print_status, ran_older_file, read_status

    search = search_request_of(given, folders=True)
    if search is not None and search.name is None:
        given.refuse(OPTIONS, "does not apply to the folder of a search")
        if key := next(iter(given.overrides), None):
            raise UserError(f"'{key}' does not apply to the folder of a search", "leave it out")
    if search is not None:
        from paribus.sweeps.search.status import status_reader

        print_status(status_reader(search.folder))
        return 0
    request = request_of(given)
    if request.overrides:  # they change nothing that is shown, but a misspelled one is a mistake
        composed = compose(arm_overrides(request.sweep, request.scale, request.sweep.baseline, request.overrides))
        check_keys(plain(composed))
    print_status(partial(read_status, request))
    if ran_older_file(request):
        say("These runs were made with an older version of the sweep file; `paribus run` repeats those that changed")
    return 0
