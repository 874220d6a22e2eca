"""The pages of searches: the result of each trial, which parameters matter, and the best trials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.files import is_name
from paribus.reporting.plots.scene import Scene
from paribus.reporting.plots.search import draw_front, draw_history, draw_importances
from paribus.reporting.site.frame import Row, render_bullets, render_frame, render_link, render_list
from paribus.reporting.tables.html import render_figure, render_scroll
from paribus.sweeps.search.status import SearchStatus
from paribus.sweeps.search.storage import STUDY

_SUFFIX = ".search"


@dataclass(frozen=True)
class Search:
    """`name` of its folder; `importances`: one line per objective; `history`: of values, or the Pareto front."""

    name: str
    board: SearchStatus
    importances: Sequence[str]
    history: Sequence[Scene]
    shares: Sequence[Scene]

    @property
    def place(self) -> str:
        """Its page in the site."""
        return f"search-{self.name}.html"


def find_searches(runs: Path) -> list[Search]:
    """The searches whose folders are in `runs` and that have trials; one that cannot be opened is reported."""
    found = []
    for path in sorted(runs.glob(f"*/{STUDY}")):
        name = path.parent.name.removesuffix(_SUFFIX)
        try:
            if is_name(name) and (search := _read(name, path.parent)).board.rows:
                found.append(search)
        except UserError as error:
            say(f"the search {name} is not shown: {error}")
    return found


def _read(name: str, folder: Path) -> Search:
    from paribus.sweeps.search.findings import describe_importances, list_history, list_pareto, rank_importances
    from paribus.sweeps.search.status import open_search

    board, study = open_search(folder)
    names, several = board.objectives, len(study.directions)
    ranked = {one: rank_importances(study, at) for at, one in enumerate(names)}
    history: list[Scene] = []
    if several == 1 and (rows := list_history(study)):
        history = [draw_history(rows, names[0])]
    elif several == 2 and (points := list_pareto(study)):
        history = [draw_front(points, names)]
    shares = [draw_importances(found, one) for one, found in ranked.items() if found]
    return Search(name, board, describe_importances(study, names), history, shares)


def render_searches(searches: Sequence[Search]) -> Iterator[str]:
    """The part of the front page that leads to them; nothing if there are none."""
    if not searches:
        return
    yield '<h2 id="searches">Searches</h2>'
    yield '<p class="lead">What Optuna tried, and which parameters matter.</p>'
    columns = {"search": "search", "state": "trials", "importance": "what matters"}
    rows = [
        Row([
            render_link(one.place, one.name),
            escape(one.board.summary()),
            "<br>".join(map(escape, one.importances)) or "too few trials",
        ], {})
        for one in searches
    ]  # fmt: skip
    yield render_list(columns, rows, "Searches", sortable=False)


def render_search_page(search: Search) -> bytes:
    """The page of one search."""
    return render_frame(search.place, f"Search {search.name}", _render_body(search))


def _render_body(search: Search) -> Iterator[str]:
    board = search.board
    yield '<p class="crumbs"><a href="index.html#searches">Searches</a></p>'
    yield f"<h1>Search {escape(search.name)}</h1>"
    yield f'<p class="lead">{escape(board.summary())}</p>'
    yield "<h2>Best trials</h2>"
    yield render_bullets(board.best) if board.best else "<p>No trial has ended with a value.</p>"
    yield render_figure("Values" if len(board.objectives) == 1 else "Pareto front", search.history)
    yield render_figure("Importance of the parameters", search.shares)
    yield "<h2>Trials</h2>"
    header, lines = board.grid()
    rows = [Row([escape(cell) for cell in line], {}) for line in lines]
    yield render_scroll(render_list({name: name for name in header}, rows, "Trials"), "Trials")
