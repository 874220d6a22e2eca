"""Interaction plots: the mean at each level of a factor, for each level of another; parallel lines do not interact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from paribus.reports.plots.panel import DRAWINGS, NUMBERS, Drawing, Panel, TableView, format_heading, set_limits
from paribus.reports.plots.style import get_style
from paribus.reports.tables.schema import FactorialTable, Table
from paribus.verdict.factorial import BY
from paribus.verdict.statistics import mean_sd

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = 1.5  # inches
_MOST = 3  # panels of a column: its largest interactions
_ROOM = 0.3  # beside the first and the last level

Means = Mapping[str, Mapping[str, float]]  # {level of the second factor: {level of the first one: mean}}


def draw_interactions(view: TableView) -> list[Panel]:
    """A panel for each of the largest interactions on each column."""
    table, panels = view.table, []
    if (factorial := table.factorial) is None:
        return []
    for column in table.columns:
        largest = sorted((row for row in factorial.on(column) if BY in row.effect), key=lambda row: -abs(row.mean))
        pairs: dict[tuple[str, str], tuple[str, ...]] = {}  # {(factor, factor): what is aliased with it}
        for row in largest:
            one, two = (part.partition(".")[0] for part in row.effect.split(BY))
            pairs.setdefault((one, two), row.aliases)
        for (one, two), aliases in list(pairs.items())[:_MOST]:
            means = average_cells(table, factorial, column, one, two)
            panel = Panel(
                title=f"interaction of {one} and {two} on {column}",
                heading=f"{one}{BY}{two}",
                below=format_heading(table, column),
                size=_SIZE,
                draw=_draw,
                args=(table, column, factorial.factors[one], means),
                foot=NUMBERS,
                key=list(means),
                caption=[f"lines: {two}" + (f"; aliased with {', '.join(aliases)}" if aliases else "")],
            )
            panels.append(panel)
    return panels


def average_cells(table: Table, factorial: FactorialTable, column: str, one: str, two: str) -> Means:
    """The mean of the arms at each pair of levels of two factors, in the unit in which the column is read."""
    unit = table.about[column].factor
    values = {arm.name: arm.metrics[column].mean for arm in table.arms if column in arm.metrics}
    means: dict[str, dict[str, float]] = {}
    for second in factorial.factors[two]:
        for first in factorial.factors[one]:
            cell = [
                values[arm]
                for arm, levels in factorial.arms.items()
                if arm in values and (levels[one], levels[two]) == (first, second)
            ]
            if cell:
                means.setdefault(second, {})[first] = unit * mean_sd(cell)[0]
    return means


def _draw(table: Table, column: str, levels: tuple[str, ...], means: Means, axes: Axes) -> None:
    places = {level: float(at) for at, level in enumerate(levels)}
    axes.set_xlim(-_ROOM, len(levels) - 1 + _ROOM)
    axes.set_xticks(list(places.values()), list(places))
    set_limits(axes, "y", [mean for of_level in means.values() for mean in of_level.values()], ticks=4)
    axes.grid(axis="y")
    for at, (level, of_level) in enumerate(means.items()):
        axes.plot([places[first] for first in of_level], list(of_level.values()), label=level, **get_style(at))


DRAWINGS.add(Drawing("interactions", "interactions of factors", draw_interactions, 5))
