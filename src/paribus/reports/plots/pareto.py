"""Quality against compute, if costs differ: which arms no other arm beats at the same or less cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paribus.reports.plots.panel import (
    DRAWINGS,
    Drawing,
    Panel,
    TableView,
    draw_interval,
    format_heading,
    set_apart,
    set_limits,
)
from paribus.reports.plots.style import COLORS, get_style
from paribus.reports.tables.schema import Cell, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = 1.7  # inches
_ROOM = 1.1  # inches, of all arms of one cost
_APART = 1.1  # ratio of costs from which on quality is drawn against them
_WIDE = 4.0  # ratio of costs from which on the axis is logarithmic

Points = dict[str, tuple[float, Cell]]  # {arm: (FLOPs, cell)}


def draw_pareto(view: TableView) -> list[Panel]:
    """One panel per column whose arms' FLOPs are on record and differ by 10% or more."""
    table, panels = view.table, []
    spent = {arm: budget.get("flops", 0.0) for arm, budget in table.budget.arms.items()}
    for column in table.columns:
        points: Points = {
            arm.name: (spent[arm.name], arm.metrics[column])
            for arm in table.arms
            if column in arm.metrics and spent.get(arm.name, 0.0) > 0
        }
        costs = [flops for flops, _ in points.values()]
        if not costs or max(costs) < _APART * min(costs):
            continue
        best = find_frontier(points, table.about[column].higher_is_better)
        panel = Panel(
            title=f"{column} against FLOPs",
            heading=format_heading(table, column),
            below="against the FLOPs of pre-training",
            size=_SIZE,
            draw=_draw,
            args=(table, column, points, best),
            key=list(points),
            caption=[f"not beaten at its cost or less: {', '.join(best)}"],
        )
        panels.append(panel)
    return panels


def find_frontier(points: Points, higher: bool) -> list[str]:
    """Arms, by cost, whose mean is better than that of every cheaper or equally cheap arm."""
    best: list[str] = []
    turn = 1.0 if higher else -1.0
    for arm in sorted(points, key=lambda name: (points[name][0], -turn * points[name][1].mean)):
        if not best or turn * points[arm][1].mean > turn * points[best[-1]][1].mean:
            best.append(arm)
    return best


def _draw(table: Table, column: str, points: Points, best: list[str], axes: Axes) -> None:
    unit = table.about[column].factor
    costs = [flops for flops, _ in points.values()]
    set_limits(axes, "x", costs, room=0.15, log=max(costs) > _WIDE * min(costs), ticks=3)
    ends = [end for _, cell in points.values() for end in (cell.mean, cell.ci_low, cell.ci_high) if end is not None]
    set_limits(axes, "y", [end * unit for end in ends])
    axes.set_xlabel("FLOPs")
    axes.grid(axis="y")
    corners = [(points[arm][0], points[arm][1].mean * unit) for arm in best]
    corners.append((axes.get_xlim()[1], corners[-1][1]))
    axes.step(*zip(*corners, strict=True), where="post", color=COLORS["soft-ink"], linewidth=0.9, linestyle="--")
    apart = set_apart(axes, {arm: flops for arm, (flops, _) in points.items()}, _ROOM)
    for at, arm in enumerate(arm.name for arm in table.arms):
        if arm in points:
            (flops, cell), style = points[arm], get_style(at)
            if cell.ci_low is not None and cell.ci_high is not None:
                interval = (cell.ci_low * unit, cell.ci_high * unit)
                draw_interval(axes, (flops, flops), interval, style["color"], linewidth=0.95, transform=apart[arm])
            style |= {"linestyle": "", "label": arm}
            axes.plot(flops, cell.mean * unit, **style, markersize=6, transform=apart[arm])


DRAWINGS.add(Drawing("pareto", "quality against compute", draw_pareto, 4))
