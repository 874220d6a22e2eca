"""The loss by the place in a segment: what a model without memory pays where it has nothing to go on from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from paribus.reports.plots.panel import DRAWINGS, Drawing, Panel, TableView, draw_interval, set_limits
from paribus.reports.plots.style import get_style
from paribus.reports.tables.schema import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_QUARTERS: Final = tuple(f"quarter{number}_loss" for number in (1, 2, 3, 4))
_SIZE = 1.7  # inches


def draw_segment(view: TableView) -> list[Panel]:
    """One panel, if the table has the losses of all quarters of a segment."""
    table = view.table
    arms = [arm.name for arm in table.arms if all(column in arm.metrics for column in _QUARTERS)]
    if not arms or not set(_QUARTERS) <= set(table.columns):
        return []
    return [
        Panel(
            title="loss by the place in a segment",
            heading="loss by place (nats, lower is better)",
            below="in the quarters of a segment",
            size=_SIZE,
            draw=_draw,
            args=(table, arms),
            key=arms,
        )
    ]


def _draw(table: Table, names: list[str], axes: Axes) -> None:
    cells = {arm.name: [arm.metrics[column] for column in _QUARTERS] for arm in table.arms if arm.name in names}
    ends = [end for row in cells.values() for cell in row for end in (cell.mean, cell.ci_low, cell.ci_high)]
    set_limits(axes, "y", [end for end in ends if end is not None])
    axes.set_xlim(0.7, 4.3)
    axes.set_xticks([1, 2, 3, 4], ["first", "second", "third", "last"])
    axes.grid(axis="y")
    for at, arm in enumerate(table.arms):
        if arm.name not in cells:
            continue
        style = get_style(at)
        places = [number + 0.02 * (at - len(names) / 2) for number in (1, 2, 3, 4)]
        for place, cell in zip(places, cells[arm.name], strict=True):
            if cell.ci_low is not None and cell.ci_high is not None:
                draw_interval(axes, (place, place), (cell.ci_low, cell.ci_high), style["color"], linewidth=0.8)
        axes.plot(places, [cell.mean for cell in cells[arm.name]], **style, label=arm.name, markersize=4)


DRAWINGS.add(Drawing("segment", "loss by place", draw_segment, 5))
