"""Arms with their intervals, one panel per column, with the seeds, the anchors and the paper's own values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from paribus.reporting.plots import axes
from paribus.reporting.plots.drawing import DRAWINGS, Drawing, View
from paribus.reporting.plots.panel import (
    NAMES,
    RIGHT,
    TOP,
    WIDTH,
    draw_interval,
    draw_text,
    draw_title,
    format_heading,
    make_scene,
)
from paribus.reporting.plots.scene import Item, Label, Line, Mark, Scene, fit_label, measure_text
from paribus.reporting.tables.blocks import format_number
from paribus.reporting.tables.schema import Cell, Table

_ROW = 34.0


class Reference(NamedTuple):
    """An anchor (a line through all arms, `at` None) or a published value (beside its arm, `text` as printed)."""

    name: str
    value: float
    at: int | None
    text: str = ""


def draw_arms(view: View) -> list[Scene]:
    """One panel per column."""
    return [_draw_panel(view.table, column) for column in view.table.columns]


def _draw_panel(table: Table, column: str) -> Scene:
    arms, unit = table.arms, table.about[column].factor
    scale = _make_scale(table, column)
    bottom = TOP + _ROW * len(arms)
    references = _find_references(table, column)
    items = [*draw_title(format_heading(table, column)), *axes.across(scale, TOP - 8, bottom)]
    items += _draw_references([one for one in references if scale.low <= one.value <= scale.high], scale, bottom)
    for at, arm in enumerate(arms):
        y = TOP + _ROW * (at + 0.5)
        items.append(fit_label(Label(NAMES - 8, y + 4, f"{arm.name} (n={arm.n})", 10.5, "end"), NAMES - 12))
        if found := arm.metrics.get(column):
            items += _draw_arm(scale, y, found, unit)
    words, end = draw_text(_write_legend(table, column, references), bottom + 20)
    return make_scene([*items, *words], end, f"{column} of each arm: mean and 95% interval")


def _find_references(table: Table, column: str) -> list[Reference]:
    """The column's anchors, and the published values if the paper's metric is the column's own."""
    unit = table.about[column].factor
    anchors = [
        Reference(anchor.name, anchor.metrics[column].mean * unit, None)
        for anchor in table.anchors
        if column in anchor.metrics
    ]
    metric = table.beside.get(column, "")
    arms = [(at, arm.published[metric]) for at, arm in enumerate(table.arms) if metric in arm.published]
    return anchors + [Reference("paper", printed.value, at, printed.shown) for at, printed in arms]


def _make_scale(table: Table, column: str) -> axes.Scale:
    """Room for the arms' intervals and seeds; the legend names what lies far outside, so that differences show."""
    cells = [arm.metrics[column] for arm in table.arms if column in arm.metrics]
    ends = [end for cell in cells for end in (cell.ci_low, cell.ci_high, *cell.values) if end is not None]
    return axes.spread([end * table.about[column].factor for end in ends], NAMES, RIGHT, room=0.2)


def _draw_references(references: list[Reference], scale: axes.Scale, bottom: float) -> list[Item]:
    """Published values as open diamonds, anchors as lines with their names."""
    items: list[Item] = [
        Mark(scale(one.value), TOP + _ROW * (one.at + 0.5) - 9, "diamond", "paper", 7, filled=False)
        for one in references
        if one.at is not None
    ]
    anchors = sorted(((scale(one.value), one.name) for one in references if one.at is None), reverse=True)
    items += [Line(((x, TOP - 8), (x, bottom)), "anchor", 1.4, (5, 3)) for x, _ in anchors]
    return items + _name_anchors(anchors)


def _name_anchors(anchors: Sequence[tuple[float, str]]) -> list[Label]:
    """Names beside their lines; one that would stand over another line or name is in the legend alone."""
    taken = [(x, x) for x, _ in anchors]
    labels = []
    for x, full in anchors:
        name = full.partition(" (")[0]
        width = measure_text(name, 9)
        for side, place, left in (("start", x + 3, x + 3), ("end", x - 3, x - 3 - width)):
            right = left + width
            if left > 0 and right < WIDTH and all(end <= left or right <= start for start, end in taken):
                labels.append(Label(place, TOP - 10, name, 9, side, "anchor"))
                taken.append((left - 3, right + 3))
                break
    return labels


def _draw_arm(scale: axes.Scale, y: float, found: Cell, unit: float) -> list[Item]:
    """Small open circles: single seeds; the bar: the interval of their mean."""
    items: list[Item] = [Mark(scale(value * unit), y + 9, "circle", "soft", 4.5, False) for value in found.values]
    if found.ci_low is not None and found.ci_high is not None:
        items += draw_interval((scale(found.ci_low * unit), y), (scale(found.ci_high * unit), y), "s0")
    return [*items, Mark(scale(found.mean * unit), y, "square", "s0", 7)]


def _write_legend(table: Table, column: str, references: list[Reference]) -> list[str]:
    """The meaning and value of each mark, also of those that are off the drawing."""
    unit = table.about[column].factor
    lines = dict.fromkeys(
        f"{r.name} {format_number(table, column, r.value / unit)}" for r in references if r.at is None
    )
    paper = [r.text for r in references if r.at is not None]
    shown = ["■ mean with its 95% interval; ○ single seeds"]
    shown += [f"- - {'; '.join(lines)}"] if lines else []
    return shown + ([f"◇ paper: {', '.join(paper)}"] if paper else [])


DRAWINGS.add(Drawing("plot", "arms with their intervals", draw_arms, 1))
