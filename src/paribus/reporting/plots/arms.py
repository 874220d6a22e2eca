"""Arms with their intervals, one panel a column, with the seeds, the anchors and the paper's own values."""

from __future__ import annotations

from typing import Any, NamedTuple

from paribus.reporting.plots import axes
from paribus.reporting.plots.panel import NAMES, RIGHT, TOP, Table, factor, heading, said, scene, titled, whiskers
from paribus.reporting.plots.scene import LETTER, Item, Label, Line, Mark, Scene, fitting
from paribus.reporting.tables.words import number, paper_number

_ROW = 34.0


class Reference(NamedTuple):
    """An anchor (a line through all arms, `at` None) or a published value (beside its arm)."""

    name: str
    value: float
    at: int | None


def panels(table: Table) -> list[Scene]:
    return [_panel(table, column) for column in table["columns"]]


def _panel(table: Table, column: str) -> Scene:
    arms, unit = table["arms"], factor(table, column)
    scale = _scale(table, column)
    bottom = TOP + _ROW * len(arms)
    references = _references(table, column)
    items = [*titled(heading(table, column)), *axes.across(scale, TOP - 8, bottom)]
    items += _references_drawn([one for one in references if scale.low <= one.value <= scale.high], scale, bottom)
    for at, arm in enumerate(arms):
        y = TOP + _ROW * (at + 0.5)
        name = f"{arm['name']} (n={arm['n']})"
        items.append(Label(NAMES - 8, y + 4, fitting(name, NAMES - 12, 10.5), 10.5, "end"))
        if found := arm["metrics"].get(column):
            items += _arm(scale, y, found, unit)
    words, end = said(_legend(table, column, references), bottom + 20)
    return scene([*items, *words], end, f"{column} of each arm: mean and 95 % interval")


def _references(table: Table, column: str) -> list[Reference]:
    """The column's anchors, and the published values only where the paper's metric is the column's own."""
    unit = factor(table, column)
    anchors = [
        Reference(anchor["name"], anchor["metrics"][column]["mean"] * unit, None)
        for anchor in table["anchors"]
        if column in anchor["metrics"]
    ]
    metric = table["paper"].get("beside", {}).get(column)
    arms = [(at, arm) for at, arm in enumerate(table["arms"]) if metric is not None and metric in arm["published"]]
    return anchors + [Reference("paper", float(paper_number(arm, metric)), at) for at, arm in arms]


def _scale(table: Table, column: str) -> axes.Scale:
    """Room for the arms' intervals and seeds; what lies far outside is said in words, so that differences show."""
    cells = [arm["metrics"][column] for arm in table["arms"] if column in arm["metrics"]]
    ends = [end for cell in cells for end in (cell["ci_low"], cell["ci_high"], *cell["values"]) if end is not None]
    return axes.spread([end * factor(table, column) for end in ends], NAMES, RIGHT, room=0.2)


def _references_drawn(references: list[Reference], scale: axes.Scale, bottom: float) -> list[Item]:
    """Published values as open diamonds, anchors as lines whose names stand clear of each other."""
    items: list[Item] = [
        Mark(scale(one.value), TOP + _ROW * (one.at + 0.5) - 9, "diamond", "paper", 7, filled=False)
        for one in references
        if one.at is not None
    ]
    limit = RIGHT
    for one in sorted((one for one in references if one.at is None), key=lambda one: -one.value):
        x, width = scale(one.value), LETTER * 9 * len(one.name) + 6
        right = x + width <= limit
        items.append(Line(((x, TOP - 8), (x, bottom)), "anchor", 1.4, (5, 3)))
        side = "start" if right else "end"
        items.append(Label(x + (3 if right else -3), TOP - 10, one.name, 9, side, "anchor"))
        limit = x if right else x - width
    return items


def _arm(scale: axes.Scale, y: float, found: Any, unit: float) -> list[Item]:
    """Small open circles: single seeds; the bar: the interval of their mean."""
    items: list[Item] = [Mark(scale(value * unit), y + 9, "circle", "soft", 4.5, False) for value in found["values"]]
    if found["ci_low"] is not None:
        items += whiskers((scale(found["ci_low"] * unit), y), (scale(found["ci_high"] * unit), y), "s0")
    return [*items, Mark(scale(found["mean"] * unit), y, "square", "s0", 7)]


def _legend(table: Table, column: str, references: list[Reference]) -> list[str]:
    """What the marks stand for, with their values, whether on the drawing or off it."""
    unit = factor(table, column)
    lines = dict.fromkeys(f"{r.name} {number(table, column, r.value / unit)}" for r in references if r.at is None)
    paper = [f"{r.value:g}" for r in references if r.at is not None]
    shown = ["■ mean with its 95 % interval; ○ single seeds"]
    shown += [f"- - {'; '.join(lines)}"] if lines else []
    return shown + ([f"◇ paper: {', '.join(paper)}"] if paper else [])
