"""The training loss around fine-tuned weights: on a line, in random directions, and on a plane for each arm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from paribus.reports.plots import curves
from paribus.reports.plots.panel import DRAWINGS, LEFT, RIGHT, WIDTH, Drawing, Panel, TableView
from paribus.reports.plots.style import COLORS, MARKS
from paribus.reports.tables.curves import make_band

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Measured = Mapping[str, Any]  # the content of flatness.json

FILE: Final = "flatness.json"
_BANDS = 8  # of losses, each a shade: light is low, in color and in grey
_DARKEST = 0.92
_ABOVE = 1.5  # of the highest loss at a start: what lies above it is drawn at the rim
_ENDS: Final = {"circle": (0.0, 0.0), "square": (1.0, 0.0), "up": (0.0, 1.0)}  # start, end, end of another seed


def draw_landscape(measured: Measured) -> list[Panel]:
    """The loss along the way from start to end, and in random directions from the end, then the planes."""
    return [
        _draw_line(measured, "line", "from the start (0) to the end (1) and beyond"),
        _draw_line(measured, "around", "from the end (0), in random directions of the weights' length"),
        *draw_planes(measured),
    ]


def draw_planes(measured: Measured) -> list[Panel]:
    """A plane for each arm that has two fine-tunings."""
    planes = {arm: content["plane"] for arm, content in measured["arms"].items() if "plane" in content}
    # borders of the bands, evenly spaced on a logarithmic scale from the lowest loss to the rim
    top = _find_top(measured)
    losses = [loss for plane in planes.values() for row in plane for loss in row if loss is not None]
    low = max(min(losses, default=top), top / 1e4)
    levels = [low * (top / low) ** (at / _BANDS) for at in range(1, _BANDS)]
    panels = []
    for arm, plane in planes.items():
        share = measured["arms"][arm]["distance"][0] / measured["arms"][arm]["length"][0]
        panel = Panel(
            title=f"training loss of {arm} on the plane of its start and two ends",
            heading=f"{arm}: training loss on a plane",
            below=f"start and end are {share:.2g} of the start's length apart",
            size=WIDTH - LEFT - RIGHT,
            draw=_draw_plane,
            args=(measured["places"]["plane"], plane, levels),
            foot=0.76,
            caption=["● start; ■ end; ▲ end of another seed; shades: loss in nats, the same in all planes"],
        )
        panels.append(panel)
    return panels


def _find_top(measured: Measured) -> float:
    """The loss up to which differences are shown; 1 if no start has a finite loss."""
    start = measured["places"]["line"].index(0.0)
    starts = [losses[start] for content in measured["arms"].values() for losses in content["line"]]
    return _ABOVE * max([loss for loss in starts if loss is not None], default=1.0)


def _number(loss: float | None) -> float:
    return math.inf if loss is None else loss


def _draw_line(measured: Measured, name: str, across: str) -> Panel:
    """A curve for each arm, its band over runs; a loss that is not a number counts as one at the rim."""
    top, bands = _find_top(measured), {}
    for arm, content in measured["arms"].items():
        runs = [[min(_number(loss), top) for loss in losses] for losses in content[name]]
        bands[f"{arm} (n={len(runs)})"] = make_band(measured["places"][name], runs)
    title = "training loss: " + ("from start to end" if name == "line" else "around the end")
    return curves.draw_panel(title, list(bands), bands, "mean over seeds, band: 95% interval", across, top)


def _draw_plane(
    places: Sequence[float], plane: Sequence[Sequence[float | None]], levels: list[float], axes: Axes
) -> None:
    """A square for each measured place; what is low has the color of the page."""
    from matplotlib.colors import BoundaryNorm, ListedColormap, to_rgba

    shades = ListedColormap([to_rgba(COLORS["s0"], _DARKEST * at / len(levels)) for at in range(_BANDS)])
    step = levels[1] / levels[0]
    norm = BoundaryNorm([levels[0] / step, *levels, levels[-1] * step], _BANDS, clip=True)
    half = (places[1] - places[0]) / 2
    rim = (places[0] - half, places[-1] + half)
    losses = [[min(_number(loss), levels[-1] * step) for loss in row] for row in plane]
    axes.imshow(losses, shades, norm, origin="lower", extent=(*rim, *rim), interpolation="none")
    axes.spines[:].set_visible(True)
    axes.locator_params(nbins=5)
    axes.set_xlabel("towards the end")
    axes.set_ylabel("towards that of another seed")
    for shape, (across, up) in _ENDS.items():
        marker = MARKS[shape].marker
        axes.plot(across, up, marker, color=COLORS["grid"], markersize=9)
        axes.plot(across, up, marker, color=COLORS["ink"])
    # no `colorbar`: on a dark page its shapes would have the page's colors, and the image would not
    key = axes.inset_axes((0, -0.19, 1, 0.035))
    key.imshow([range(_BANDS)], shades, aspect="auto", extent=(0, _BANDS, 0, 1), interpolation="none")
    key.spines[:].set_visible(True)
    key.set_xticks(range(1, _BANDS), labels=[f"{level:.2g}" for level in levels])
    key.set_yticks([])


def draw_view(view: TableView) -> list[Panel]:
    """The landscape of a view that has one."""
    return [] if view.landscape is None else draw_landscape(view.landscape)


DRAWINGS.add(Drawing("landscape", "training loss around the fine-tuned weights, {view.landscape[task]}", draw_view, 6))
