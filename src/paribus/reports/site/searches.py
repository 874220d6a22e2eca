"""The pages of searches: the result of each trial, which parameters matter, and the best trials, drawn and listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.core.files import is_name
from paribus.reports.plots.panel import NAMES, Panel, name_row, set_limits
from paribus.reports.plots.style import COLORS, SERIES
from paribus.reports.tables.html import render_page
from paribus.sweeps.search.status import SearchStatus
from paribus.sweeps.search.storage import STUDY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SUFFIX = ".search"
_SIZE, _ROW = 1.7, 0.18  # inches
_WIDE = 4.0  # ratio of values from which on an axis is logarithmic


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


def draw_history(rows: Sequence[tuple[int, float, float]], objective: str) -> Panel:
    """Values and the best so far; rows: (trial, its value, the best so far)."""

    def draw(axes: Axes) -> None:
        trials, values, best = zip(*rows, strict=True)
        set_limits(axes, "x", [0.0, *trials], room=0.03)
        set_limits(axes, "y", values)
        axes.set_xlabel("trial")
        axes.grid(axis="y")
        axes.step(trials, best, where="post", color=SERIES[0])
        axes.plot(trials, values, "o", color=SERIES[1], markersize=4.3)

    return Panel(f"{objective} against trials", objective, _SIZE, draw, "each trial, and the best so far")


def draw_front(points: Sequence[tuple[int, float, float, bool]], names: Sequence[str]) -> Panel:
    """Two objectives; points: (trial, first value, second value, whether no other trial beats it in both)."""

    def draw(axes: Axes) -> None:
        across = [first for _, first, _, _ in points]
        log = min(across) > 0 and max(across) > _WIDE * min(across)
        set_limits(axes, "x", across, log=log, ticks=3)
        set_limits(axes, "y", [second for _, _, second, _ in points])
        axes.set_xlabel(names[0])
        axes.grid(axis="y")
        for _, first, second, best in points:
            axes.plot(first, second, "o", color=SERIES[0], markerfacecolor=SERIES[0] if best else "none")

    below = "each trial; filled: no other trial beats it in both"
    return Panel(f"{names[1]} against {names[0]}", names[1], _SIZE, draw, below)


def draw_importances(shares: Mapping[str, float], objective: str) -> Panel:
    """A bar for each parameter: its share (0 to 1) of the variance of an objective."""

    def draw(axes: Axes) -> None:
        bars = axes.barh(range(len(shares)), list(shares.values()), height=0.6, color=SERIES[0])
        axes.bar_label(bars, [f"{share:.0%}" for share in shares.values()], padding=4, color=COLORS["soft-ink"])
        axes.set(xlim=(0, 1.2), ylim=(len(shares) - 0.5, -0.5))
        axes.set_axis_off()
        for at, name in enumerate(shares):
            name_row(axes, at, name)

    below = "share of the variance that each parameter explains (fANOVA)"
    title, size = f"importance for {objective}", _ROW * len(shares)
    return Panel(title, objective, size, draw, below, left=NAMES, foot=0.0)
