"""The pages of searches: the result of each trial, which parameters matter, and the best trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.files import is_name
from paribus.reports.plots.panel import Panel
from paribus.reports.plots.search import draw_front, draw_history, draw_importances
from paribus.reports.rendering import render_page
from paribus.sweeps.search.status import SearchStatus
from paribus.sweeps.search.storage import STUDY

_SUFFIX = ".search"


@dataclass(frozen=True)
class Search:
    """`name` of its folder; `importances`: one line per objective; `history`: of values, or the Pareto front."""

    name: str
    board: SearchStatus
    importances: Sequence[str]
    history: Sequence[Panel]
    shares: Sequence[Panel]

    @property
    def place(self) -> str:
        """Its page in the site."""
        return f"search-{self.name}.html"


def find_searches(runs: Path) -> list[Search]:
    """The searches whose folders are in `runs` and that have trials; one that cannot be opened is reported."""
    searches = []
    for path in sorted(runs.glob(f"*/{STUDY}")):
        name = path.parent.name.removesuffix(_SUFFIX)
        try:
            if is_name(name) and (search := _read_search(name, path.parent)).board.rows:
                searches.append(search)
        except UserError as error:
            say(f"the search {name} is not shown: {error}")
    return searches


def _read_search(name: str, folder: Path) -> Search:
    from paribus.sweeps.search.status import (
        describe_importances,
        list_history,
        list_pareto,
        open_search,
        rank_importances,
    )

    board, study = open_search(folder)
    names, several = board.objectives, len(study.directions)
    ranked = {one: rank_importances(study, at) for at, one in enumerate(names)}
    history: list[Panel] = []
    if several == 1 and (rows := list_history(study)):
        history = [draw_history(rows, names[0])]
    elif several == 2 and (points := list_pareto(study)):
        history = [draw_front(points, names)]
    shares = [draw_importances(importances, one) for one, importances in ranked.items() if importances]
    return Search(name, board, describe_importances(study, names), history, shares)


def render_search_page(search: Search) -> bytes:
    """The page of one search."""
    names, trials = search.board.grid()
    return render_page("search.html", search.place, f"Search {search.name}", search=search, names=names, trials=trials)
