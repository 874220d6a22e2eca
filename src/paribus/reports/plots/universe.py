"""The effect in each setting of a universe against each factor, turned so that up favors the claim's first arm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paribus.reports.plots.panel import (
    DRAWINGS,
    Drawing,
    Panel,
    TableView,
    draw_margin,
    format_heading,
    set_limits,
)
from paribus.reports.plots.style import COLORS, get_style
from paribus.reports.tables.blocks import format_p
from paribus.reports.tables.schema import FactorRow, SettingsRow, Table, UniverseTable
from paribus.verdict.metrics import lower_is_better
from paribus.verdict.statistics import ALPHA
from paribus.verdict.universe import is_log

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = 1.5  # inches
_ROOM = 0.5  # beside the first and the last name


def draw_universe(view: TableView) -> list[Panel]:
    """One panel for each contrast of a claim and each factor."""
    table = view.table
    if (universe := table.universe) is None:
        return []
    margins = {(row.column, row.arm, row.versus): row.margin for claim in table.claims for row in claim.contrasts}
    rows = {(row.column, row.arm, row.versus): row for claim in universe.claims.values() for row in claim}
    return [
        Panel(
            title=f"effect of {row.pair} on {row.column} against {fit.factor}",
            heading=f"{row.pair} against {fit.factor}",
            below=f"{format_heading(table, row.column)}, up: {row.arm} is better",
            size=_SIZE,
            draw=_draw,
            args=(table, universe, row, fit, margins[key]),
            caption=[_describe(fit, bool(margins[key]))],
        )
        for key, row in rows.items()
        for fit in row.factors
    ]


def _describe(fit: FactorRow, has_margin: bool) -> str:
    depends = "the effect depends on it" if fit.p_table < ALPHA else "not shown that the effect depends on it"
    band = "; shaded: within the margin" if has_margin else ""
    return f"a point: one setting; line: the fit; {depends} (p of the table {format_p(fit.p_table)}){band}"


def _draw(table: Table, universe: UniverseTable, row: SettingsRow, fit: FactorRow, margin: float, axes: Axes) -> None:
    unit = table.about[row.column].factor * (-1.0 if lower_is_better(row.column) else 1.0)
    values = {str(setting.number): setting.values[fit.factor] for setting in universe.settings}
    kinds = sorted({values[number] for number in row.effects}, key=list(values.values()).index)
    places, log = _place(kinds), is_log(kinds)
    x = [places[values[number]] for number in row.effects]
    y = [effect * unit for effect in row.effects.values()]
    fitted = {places[value]: effect * unit for value, effect in fit.fitted.items()}
    if log is None:
        axes.set_xlim(-_ROOM, len(kinds) - 1 + _ROOM)
        axes.set_xticks(list(places.values()), list(places))
    else:
        set_limits(axes, "x", x, log=log and max(x) >= 2.0 * min(x), ticks=4)
    set_limits(axes, "y", [0.0, *y, *fitted.values()], ticks=4)
    draw_margin(axes, margin * abs(unit))
    axes.grid(axis="y")
    axes.set_xlabel(fit.factor)
    style: dict[str, Any] = {"color": COLORS["soft-ink"], "linewidth": 1.1}
    if log is None:
        for place, mean in fitted.items():
            axes.plot((place - 0.25, place + 0.25), (mean, mean), **style)
    else:
        axes.plot(list(fitted), list(fitted.values()), **style)
    axes.plot(x, y, **{**get_style(0), "linestyle": ""})


def _place(kinds: list[str]) -> Mapping[str, float]:
    """{value: its place on the axis}: numbers at themselves, names one after another."""
    if is_log(kinds) is None:
        return {kind: float(at) for at, kind in enumerate(kinds)}
    return {kind: float(kind) for kind in kinds}


DRAWINGS.add(Drawing("universe", "the effect in each setting", draw_universe, 3))
