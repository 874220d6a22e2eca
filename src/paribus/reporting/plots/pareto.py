"""Quality against compute: which arms no other arm beats at the same or less cost."""

from __future__ import annotations

from typing import Any

from paribus.reporting.plots import axes
from paribus.reporting.plots.panel import LEFT, RIGHT, TOP, Table, factor, heading, key, said, scene, titled, whiskers
from paribus.reporting.plots.scene import Item, Label, Line, Mark, Scene, series

_HEIGHT = 170.0
_NEAR = 8.0  # pixels within which costs count as the same
_STEP = 11.0
_WIDE = 4.0  # ratio of costs from which on the axis goes by orders of magnitude


def panels(table: Table) -> list[Scene]:
    """One panel for each column, of the arms whose FLOPs are on record."""
    found = [(column, _points(table, column)) for column in table["columns"]]
    return [_panel(table, column, points) for column, points in found if points]


def _points(table: Table, column: str) -> dict[str, tuple[float, dict[str, Any]]]:
    """{arm: (FLOPs, cell)}."""
    spent = {arm: budget.get("flops", 0.0) for arm, budget in table["budget"]["arms"].items()}
    return {
        arm["name"]: (spent[arm["name"]], arm["metrics"][column])
        for arm in table["arms"]
        if column in arm["metrics"] and spent.get(arm["name"], 0.0) > 0
    }


def frontier(points: dict[str, tuple[float, dict[str, Any]]], higher: bool) -> list[str]:
    """Arms, by cost, whose mean is better than that of every cheaper or equally cheap arm."""
    best: list[str] = []
    turn = 1.0 if higher else -1.0
    for arm in sorted(points, key=lambda name: (points[name][0], -turn * points[name][1]["mean"])):
        if not best or turn * points[arm][1]["mean"] > turn * points[best[-1]][1]["mean"]:
            best.append(arm)
    return best


def _panel(table: Table, column: str, points: dict[str, tuple[float, dict[str, Any]]]) -> Scene:
    bottom, unit = TOP + _HEIGHT, factor(table, column)
    costs = [flops for flops, _ in points.values()]
    x = axes.spread(costs, LEFT, RIGHT, log=max(costs) / min(costs) > _WIDE, room=0.15)
    cells = [cell[end] for _, cell in points.values() for end in ("mean", "ci_low", "ci_high") if cell[end] is not None]
    y = axes.spread([value * unit for value in cells], bottom, TOP)
    items = [*titled(heading(table, column), "against the FLOPs of pre-training"), *axes.up(y, LEFT, RIGHT)]
    items += axes.across(x, bottom, bottom, 3)
    best = frontier(points, table["about"][column]["higher_is_better"])
    items += _front(best, points, x, y, unit)
    places = _apart({arm: x(flops) for arm, (flops, _) in points.items()})
    for at, arm in enumerate(arm["name"] for arm in table["arms"]):
        if arm in points:
            items += _point(points[arm][1], at, places[arm], y, unit)
    items.append(Label((LEFT + RIGHT) / 2, bottom + 28, "FLOPs", 10, "middle", "soft"))
    marks, end = key([arm["name"] for arm in table["arms"]], bottom + 32)
    words, end = said([f"not beaten at its cost or less: {', '.join(best)}"], end)
    return scene([*items, *marks, *words], end, f"{column} against FLOPs")


def _front(
    best: list[str], points: dict[str, tuple[float, dict[str, Any]]], x: axes.Scale, y: axes.Scale, unit: float
) -> list[Item]:
    corners: list[tuple[float, float]] = []
    for arm in best:
        place = x(points[arm][0]), y(points[arm][1]["mean"] * unit)
        corners += [(place[0], corners[-1][1]), place] if corners else [place]
    return [Line((*corners, (RIGHT, corners[-1][1])), "soft", 1.2, (4, 3))]


def _apart(places: dict[str, float]) -> dict[str, float]:
    """{arm: pixel}: arms of the same cost side by side around it."""
    groups: dict[int, list[str]] = {}
    for arm, place in places.items():
        groups.setdefault(round(place / _NEAR), []).append(arm)
    middles = {arm: (at, (len(group) - 1) / 2) for group in groups.values() for at, arm in enumerate(group)}
    return {arm: places[arm] + _STEP * (at - middle) for arm, (at, middle) in middles.items()}


def _point(cell: dict[str, Any], at: int, x: float, y: axes.Scale, unit: float) -> list[Item]:
    color, shape, _ = series(at)
    items: list[Item] = []
    if cell["ci_low"] is not None:
        items += whiskers((x, y(cell["ci_low"] * unit)), (x, y(cell["ci_high"] * unit)), color, 1.3)
    return [*items, Mark(x, y(cell["mean"] * unit), shape, color, 9)]
