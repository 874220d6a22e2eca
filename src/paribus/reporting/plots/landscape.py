"""The training loss around fine-tuned weights: on a line, in random directions, and on a plane for each arm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from paribus.reporting.plots import axes, curves
from paribus.reporting.plots.drawing import DRAWINGS, Drawing, View
from paribus.reporting.plots.panel import LEFT, TOP, WIDTH, draw_text, draw_title, make_scene
from paribus.reporting.plots.scene import Area, Item, Label, Line, Mark, Scene, place_beside
from paribus.reporting.tables.curves import make_band

Measured = Mapping[str, Any]  # the content of flatness.json

FILE: Final = "flatness.json"
_WIDE = 260.0  # of a plane, about
_BANDS = 8  # of losses, each a shade: light is low, in color and in grey
_DARKEST = 0.92
_ABOVE = 1.5  # of the highest loss at a start: what lies above it is drawn at the rim
_ENDS: Final = {"circle": (0.0, 0.0), "square": (1.0, 0.0), "up": (0.0, 1.0)}  # start, end, end of another seed


def draw_landscape(measured: Measured) -> Scene:
    """All panels as one: the lines in a row, the planes below them."""
    rows = [place_beside(row) for row in (draw_lines(measured), draw_planes(measured)) if row]
    return place_beside(rows, max(row.width for row in rows))


def draw_lines(measured: Measured) -> list[Scene]:
    """The loss along the way from start to end, and in random directions from the end."""
    return [
        _draw_line(measured, "line", "from the start (0) to the end (1) and beyond"),
        _draw_line(measured, "around", "from the end (0), in random directions of the weights' length"),
    ]


def draw_planes(measured: Measured) -> list[Scene]:
    """A plane for each arm that has two fine-tunings."""
    found = {arm: own["plane"] for arm, own in measured["arms"].items() if "plane" in own}
    levels = _make_levels([row for plane in found.values() for row in plane], _find_top(measured))
    return [_draw_plane(measured, arm, plane, levels) for arm, plane in found.items()]


def _find_top(measured: Measured) -> float:
    """The loss up to which differences are shown; 1 if no start has a finite loss."""
    start = measured["places"]["line"].index(0.0)
    found = [losses[start] for own in measured["arms"].values() for losses in own["line"]]
    return _ABOVE * max([loss for loss in found if loss is not None], default=1.0)


def _number(loss: float | None) -> float:
    return math.inf if loss is None else loss


def _draw_line(measured: Measured, name: str, across: str) -> Scene:
    """A curve for each arm, its band over runs; a loss that is not a number counts as one at the rim."""
    top, found = _find_top(measured), {}
    for arm, own in measured["arms"].items():
        runs = [[min(_number(loss), top) for loss in losses] for losses in own[name]]
        found[f"{arm} (n={len(runs)})"] = make_band(measured["places"][name], runs)
    title = "training loss: " + ("from start to end" if name == "line" else "around the end")
    return curves.draw_panel(title, list(found), found, "mean over seeds, band: 95% interval", across, top)


def _make_levels(rows: Sequence[Sequence[float | None]], top: float) -> list[float]:
    """Borders of the bands, evenly spaced on a logarithmic scale from the lowest loss to the rim."""
    low = min((loss for row in rows for loss in row if loss is not None), default=top)
    low = max(low, top / 1e4)
    return [low * (top / low) ** (at / _BANDS) for at in range(1, _BANDS)]


def _draw_plane(measured: Measured, arm: str, plane: Sequence[Sequence[float | None]], levels: list[float]) -> Scene:
    places = measured["places"]["plane"]
    cell = float(int(_WIDE / len(places)))  # whole pixels, so that no seam shows
    side = cell * len(places)
    half = (places[1] - places[0]) / 2
    x = axes.Scale(places[0] - half, places[-1] + half, LEFT, LEFT + side)
    y = axes.Scale(places[0] - half, places[-1] + half, TOP + side, TOP)
    items: list[Item] = [*draw_title(f"{arm}: training loss on a plane", _describe_distance(measured, arm))]
    items += [*_draw_cells(plane, levels, cell, TOP + side), _box(LEFT, LEFT + side, TOP, TOP + side)]
    ticks = [*axes.across(x, TOP + side, TOP + side, 4), *axes.up(y, LEFT, LEFT, 4)]
    items += [item for item in ticks if isinstance(item, Label)]
    items.append(Label(LEFT + side / 2, TOP + side + 28, "towards the end", 10, "middle", "soft"))
    items.append(Label(LEFT - 38, TOP + side / 2, "towards that of another seed", 10, "middle", "soft", turned=True))
    for shape, (across, up) in _ENDS.items():
        items += [Mark(x(across), y(up), shape, "grid", 13), Mark(x(across), y(up), shape, "ink", 8)]
    shades, end = _draw_shades(levels, TOP + side + 40)
    words, end = draw_text(["● start; ■ end; ▲ end of another seed; shades: loss in nats, the same in all planes"], end)
    return make_scene([*items, *shades, *words], end, f"training loss of {arm} on the plane of its start and two ends")


def _describe_distance(measured: Measured, arm: str) -> str:
    own = measured["arms"][arm]
    share = own["distance"][0] / own["length"][0]
    return f"start and end are {share:.2g} of the start's length apart"


def _draw_cells(plane: Sequence[Sequence[float | None]], levels: list[float], cell: float, bottom: float) -> list[Item]:
    """A square for each measured place; neighbors of a shade in a row are one."""
    items: list[Item] = []
    for row, losses in enumerate(plane):
        shades = [_DARKEST * sum(_number(loss) >= level for level in levels) / len(levels) for loss in losses]
        at, low = 0, bottom - cell * (row + 1)
        while at < len(shades):
            end = next((place for place in range(at, len(shades)) if shades[place] != shades[at]), len(shades))
            left, right = LEFT + cell * at, LEFT + cell * end
            items.append(_square(left, right, low, low + cell, shades[at]))
            at = end
    return items


def _square(left: float, right: float, top: float, bottom: float, shade: float) -> Area:
    return Area(((left, top), (right, top), (right, bottom), (left, bottom)), "s0", round(shade, 3))


def _draw_shades(levels: list[float], top: float) -> tuple[list[Item], float]:
    """(the shades with the losses between them; the bottom of them)."""
    wide = float(int((WIDTH - LEFT - 40) / _BANDS))
    items: list[Item] = []
    for at in range(_BANDS):
        left = LEFT + wide * at
        items.append(_square(left, left + wide, top, top + 10, _DARKEST * at / len(levels)))
    for at, level in enumerate(levels, 1):
        items.append(Label(LEFT + wide * at, top + 22, f"{level:.2g}", 9, "middle", "soft"))
    return [*items, _box(LEFT, LEFT + wide * _BANDS, top, top + 10)], top + 28


def _box(left: float, right: float, top: float, bottom: float) -> Line:
    return Line(((left, top), (right, top), (right, bottom), (left, bottom), (left, top)), "soft", 1)


def _draw_view(view: View) -> list[Scene]:
    return [] if view.landscape is None else [*draw_lines(view.landscape), *draw_planes(view.landscape)]


DRAWINGS.add(Drawing("landscape", "training loss around the fine-tuned weights, {view.landscape[task]}", _draw_view, 6))
