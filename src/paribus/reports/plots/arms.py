"""Arms with their intervals, one panel per column, with the seeds, the anchors and the paper's own values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paribus.reports.plots.panel import (
    DRAWINGS,
    NAMES,
    NUMBERS,
    Drawing,
    Panel,
    TableView,
    draw_interval,
    draw_paper,
    format_heading,
    get_measure,
    name_row,
    set_limits,
)
from paribus.reports.plots.style import COLORS, SERIES
from paribus.reports.tables.blocks import format_number
from paribus.reports.tables.schema import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW = 0.34  # inches


def draw_arms(view: TableView) -> list[Panel]:
    """One panel per column."""
    table = view.table
    return [
        Panel(
            title=f"{column} of each arm: mean and 95% interval",
            heading=format_heading(table, column),
            size=_ROW * len(table.arms) + 0.08,
            draw=_draw,
            args=(table, column),
            left=NAMES,
            foot=NUMBERS,
            caption=_write_caption(table, column),
        )
        for column in table.columns
    ]


def _draw(table: Table, column: str, axes: Axes) -> None:
    unit, metric = table.about[column].factor, table.beside.get(column, "")
    cells = {at: arm.metrics[column] for at, arm in enumerate(table.arms) if column in arm.metrics}
    ends = [end for cell in cells.values() for end in (cell.ci_low, cell.ci_high, *cell.values) if end is not None]
    # room for intervals and seeds: the caption names what lies far outside, so that differences show
    set_limits(axes, "x", [end * unit for end in ends], room=0.2)
    axes.set_ylim(len(table.arms) - 0.5, -0.74)
    axes.set_yticks([])
    axes.grid(axis="x")
    # a line for each, and its name beside it; one that would stand over another line or name is in the caption
    # alone. Needs the final limits of the horizontal axis.
    anchors = {name: value * unit for name, value in _find_anchors(table, column).items()}
    low, high = axes.get_xlim()
    places = sorted(((value, name) for name, value in anchors.items() if low <= value <= high), reverse=True)
    frame = axes.figure.bbox
    taken = []
    for value, _ in places:
        axes.axvline(value, color=COLORS["anchor"], linewidth=1.0, linestyle=(0, (3.6, 2.2)))
        pixel = axes.transData.transform((value, 0.0))[0]
        taken.append((pixel, pixel))
    for value, name in places:
        for side, shift in (("left", 2), ("right", -2)):
            text = axes.annotate(
                name.partition(" (")[0], (value, 1), xycoords=axes.get_xaxis_transform(), xytext=(shift, 2),
                textcoords="offset points", ha=side, va="bottom", fontsize=6.5, color=COLORS["anchor"],
            )  # fmt: skip
            box = text.get_window_extent(get_measure())
            free = all(end < box.x0 or start > box.x1 for start, end in taken)
            if free and frame.x0 < box.x0 and box.x1 < frame.x1:
                taken.append((box.x0, box.x1))
                break
            text.remove()
    for at, arm in enumerate(table.arms):
        name_row(axes, at, f"{arm.name} (n={arm.n})")
        if printed := arm.published.get(metric):
            draw_paper(axes, printed.value, at - 0.27)
        if cell := cells.get(at):
            values = [value * unit for value in cell.values]
            axes.plot(values, [at + 0.27] * len(values), "o", color=COLORS["soft-ink"], mfc="none", markersize=3.2)
            if cell.ci_low is not None and cell.ci_high is not None:
                draw_interval(axes, (cell.ci_low * unit, cell.ci_high * unit), (at, at), SERIES[0])
            axes.plot(cell.mean * unit, at, "s", color=SERIES[0])


def _find_anchors(table: Table, column: str) -> dict[str, float]:
    return {anchor.name: anchor.metrics[column].mean for anchor in table.anchors if column in anchor.metrics}


def _write_caption(table: Table, column: str) -> list[str]:
    """The meaning and value of each mark, also of those that are off the drawing."""
    metric = table.beside.get(column, "")
    anchors = [f"{name} {format_number(table, column, value)}" for name, value in _find_anchors(table, column).items()]
    paper = [arm.published[metric].shown for arm in table.arms if metric in arm.published]
    lines = ["■ mean with its 95% interval; ○ single seeds"]
    lines += [f"- - {'; '.join(anchors)}"] if anchors else []
    return lines + ([f"◇ paper: {', '.join(paper)}"] if paper else [])


DRAWINGS.add(Drawing("plot", "arms with their intervals", draw_arms, 1))
