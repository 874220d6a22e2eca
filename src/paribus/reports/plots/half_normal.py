"""Half-normal plots of effects (Daniel 1959): effects that are luck alone lie on a line through zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paribus.reports.plots.panel import DRAWINGS, NUMBERS, Drawing, Panel, TableView, format_heading, set_limits
from paribus.reports.plots.style import COLORS, get_style
from paribus.reports.tables.schema import EffectRow, Table
from paribus.verdict.factorial import half_normal_places, lenth_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW, _LEAST = 0.26, 1.2  # inches
_FEWEST = 3  # effects


def draw_half_normal(view: TableView) -> list[Panel]:
    """One panel for each column with three effects or more that have the same standard error."""
    table = view.table
    if table.factorial is None or not table.factorial.equal_errors:
        return []
    panels = []
    for column in table.columns:
        rows = sorted(table.factorial.on(column), key=lambda row: abs(row.mean))
        if len(rows) >= _FEWEST:
            panel = Panel(
                title=f"half-normal plot of the effects on {column}",
                heading=format_heading(table, column),
                below="size of each effect against its place if all were luck",
                size=max(_LEAST, _ROW * len(rows)),
                draw=_draw,
                args=(table, column, rows),
                foot=NUMBERS,
                caption=["filled: p (Holm) below 0.05; line: luck alone, by Lenth's pseudo standard error"],
            )
            panels.append(panel)
    return panels


def _draw(table: Table, column: str, rows: Sequence[EffectRow], axes: Axes) -> None:
    unit, places = table.about[column].factor, half_normal_places(len(rows))
    sizes = [abs(row.mean) * unit for row in rows]
    error = lenth_error(sizes)
    set_limits(axes, "x", [0.0, 1.35 * max(sizes)])  # with room for the names
    set_limits(axes, "y", [0.0, *places], ticks=4)
    axes.grid(axis="x")
    if error:
        axes.plot((0.0, error * places[-1]), (0.0, places[-1]), color=COLORS["soft-ink"], linewidth=1.0)
    style = {**get_style(0), "linestyle": ""}
    for row, size, place in zip(rows, sizes, places, strict=True):
        filled = row.p_holm is not None and row.p_holm < 0.05
        axes.plot(size, place, **{**style, **({} if filled else {"markerfacecolor": "none"})})
        axes.annotate(
            f"{row.effect} {'+' if row.mean > 0.0 else '-'}", (size, place), xytext=(5, 0),
            textcoords="offset points", va="center", fontsize=6.8,
        )  # fmt: skip


DRAWINGS.add(Drawing("half_normal", "half-normal plots of effects", draw_half_normal, 4))
