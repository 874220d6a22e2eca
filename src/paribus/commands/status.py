"""`paribus status`: the state of every run of a sweep, or of every trial of a search."""

from __future__ import annotations

from functools import partial

from paribus.core.arguments import Arguments, verb
from paribus.sweeps.request import OPTIONS, request_of
from paribus.sweeps.search import request as searches


@verb(
    "Show the state of every run of a sweep, or of every trial of a search. In a terminal, the view is live. Name a "
    "search by its name or its folder.",
    searches.SWEEP_OR_SEARCH,
    *OPTIONS,
    overrides=True,
    example="paribus status roberta_table1 scale=cpu",
)  # fmt: skip
def status(given: Arguments) -> int:
    """Print the board."""
    from paribus.sweeps.board import show
    from paribus.sweeps.survey import survey

    search = searches.request_of(given, folders=True)
    show(partial(survey, request_of(given)) if search is None else searches.look(search))
    return 0
