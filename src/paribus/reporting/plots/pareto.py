"""Quality against compute, if costs differ: which arms no other arm beats at the same or less cost."""

from __future__ import annotations

from paribus.reporting.plots import axes
from paribus.reporting.plots.drawing import DRAWINGS, Drawing, View
from paribus.reporting.plots.panel import (
    LEFT,
    RIGHT,
    TOP,
    draw_interval,
    draw_key,
    draw_text,
    draw_title,
    format_heading,
    make_scene,
)  # fmt: skip
from paribus.reporting.plots.scene import Item, Label, Line, Mark, Scene, get_style
from paribus.reporting.tables.schema import Cell, Table

_HEIGHT = 170.0
_NEAR = 8.0  # pixels within which costs count as the same
_STEP = 11.0
_APART = 1.1  # ratio of costs from which on quality is drawn against them
_WIDE = 4.0  # ratio of costs from which on the axis is logarithmic

Points = dict[str, tuple[float, Cell]]  # {arm: (FLOPs, cell)}


def draw_pareto(view: View) -> list[Scene]:
    """One panel per column whose arms' FLOPs are on record and differ by 10% or more."""
    found = [(column, _find_points(view.table, column)) for column in view.table.columns]
    return [_draw_panel(view.table, column, points) for column, points in found if _is_apart(points)]


def _is_apart(points: Points) -> bool:
    costs = [flops for flops, _ in points.values()]
    return bool(costs) and max(costs) >= _APART * min(costs)


def _find_points(table: Table, column: str) -> Points:
    spent = {arm: budget.get("flops", 0.0) for arm, budget in table.budget.arms.items()}
    return {
        arm.name: (spent[arm.name], arm.metrics[column])
        for arm in table.arms
        if column in arm.metrics and spent.get(arm.name, 0.0) > 0
    }


def find_frontier(points: Points, higher: bool) -> list[str]:
    """Arms, by cost, whose mean is better than that of every cheaper or equally cheap arm."""
    best: list[str] = []
    turn = 1.0 if higher else -1.0
    for arm in sorted(points, key=lambda name: (points[name][0], -turn * points[name][1].mean)):
        if not best or turn * points[arm][1].mean > turn * points[best[-1]][1].mean:
            best.append(arm)
    return best


def _draw_panel(table: Table, column: str, points: Points) -> Scene:
    bottom, unit = TOP + _HEIGHT, table.about[column].factor
    costs = [flops for flops, _ in points.values()]
    x = axes.spread(costs, LEFT, RIGHT, log=max(costs) / min(costs) > _WIDE, room=0.15)
    ends = [end for _, cell in points.values() for end in (cell.mean, cell.ci_low, cell.ci_high) if end is not None]
    y = axes.spread([end * unit for end in ends], bottom, TOP)
    items = [*draw_title(format_heading(table, column), "against the FLOPs of pre-training"), *axes.up(y, LEFT, RIGHT)]
    items += axes.across(x, bottom, bottom, 3)
    best = find_frontier(points, table.about[column].higher_is_better)
    items += _draw_front(best, points, x, y, unit)
    places = _separate({arm: x(flops) for arm, (flops, _) in points.items()})
    for at, arm in enumerate(arm.name for arm in table.arms):
        if arm in points:
            items += _draw_point(points[arm][1], at, places[arm], y, unit)
    items.append(Label((LEFT + RIGHT) / 2, bottom + 28, "FLOPs", 10, "middle", "soft"))
    marks, end = draw_key([arm.name for arm in table.arms], bottom + 32)
    words, end = draw_text([f"not beaten at its cost or less: {', '.join(best)}"], end)
    return make_scene([*items, *marks, *words], end, f"{column} against FLOPs")


def _draw_front(best: list[str], points: Points, x: axes.Scale, y: axes.Scale, unit: float) -> list[Item]:
    corners: list[tuple[float, float]] = []
    for arm in best:
        place = x(points[arm][0]), y(points[arm][1].mean * unit)
        corners += [(place[0], corners[-1][1]), place] if corners else [place]
    return [Line((*corners, (RIGHT, corners[-1][1])), "soft", 1.2, (4, 3))]


def _separate(places: dict[str, float]) -> dict[str, float]:
    """{arm: pixel}: arms of the same cost side by side around it."""
    groups: dict[int, list[str]] = {}
    for arm, place in places.items():
        groups.setdefault(round(place / _NEAR), []).append(arm)
    middles = {arm: (at, (len(group) - 1) / 2) for group in groups.values() for at, arm in enumerate(group)}
    return {arm: places[arm] + _STEP * (at - middle) for arm, (at, middle) in middles.items()}


def _draw_point(cell: Cell, at: int, x: float, y: axes.Scale, unit: float) -> list[Item]:
    color, shape, _ = get_style(at)
    items: list[Item] = []
    if cell.ci_low is not None and cell.ci_high is not None:
        items += draw_interval((x, y(cell.ci_low * unit)), (x, y(cell.ci_high * unit)), color, 1.3)
    return [*items, Mark(x, y(cell.mean * unit), shape, color, 9)]


DRAWINGS.add(Drawing("pareto", "quality against compute", draw_pareto, 4))
