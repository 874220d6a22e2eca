"""The loss by the place in a segment: what a model without memory pays where it has nothing to go on from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from paribus.reports.plots.panel import DRAWINGS, Drawing, Panel, TableView, set_limits
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
            caption=["means over the seeds; paired differences are in the table"],
        )
    ]


def _draw(table: Table, names: list[str], axes: Axes) -> None:
    means = {arm.name: [arm.metrics[column].mean for column in _QUARTERS] for arm in table.arms if arm.name in names}
    set_limits(axes, "y", [mean for row in means.values() for mean in row])
    axes.set_xlim(0.7, 4.3)
    axes.set_xticks([1, 2, 3, 4], ["first", "second", "third", "last"])
    axes.grid(axis="y")
    for at, arm in enumerate(table.arms):
        if arm.name in means:
            axes.plot([1, 2, 3, 4], means[arm.name], **get_style(at), label=arm.name, markersize=4)


DRAWINGS.add(Drawing("segment", "loss by place", draw_segment, 5))
