"""Learning curves: means over seeds with 95% bands, one panel per metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paribus.reports.plots.panel import DRAWINGS, Drawing, Panel, TableView, draw_margin, set_apart, set_limits
from paribus.reports.plots.style import get_style
from paribus.reports.tables.curves import DIFFERENCE, find_factor, scale_band
from paribus.reports.tables.schema import Band, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = 1.9  # inches
_FEW = 2  # points of a curve that are drawn as marks: a line through them would look like more
_ROOM = 0.4  # inches, of all single points at the same place
_QUANTILE = 0.02  # of the values that may lie above the panel: the first steps would flatten the rest


def draw_curves(view: TableView) -> list[Panel]:
    """One panel per metric that was measured while an arm was trained."""
    curves = view.table.curves.items()
    return [_draw_arms(view.table, metric, bands) for metric, bands in curves if any(map(reaches, bands.values()))]


def _draw_arms(table: Table, metric: str, curves: Mapping[str, Band]) -> Panel:
    """One curve per arm; a single one if the arms that have one share their pre-training."""
    arms = [arm.name for arm in table.arms]
    shown = {arm: curves[arm] for arm in arms if arm in curves}
    first = next(iter(shown.values()))
    if len(shown) > 1 and all(band == first for band in shown.values()):
        arms = ["all arms" if len(shown) == len(arms) else ", ".join(shown)]
        shown = {arms[0]: first}
    names = {arm: f"{arm} (n={band.n})" for arm, band in shown.items()}
    bands = {names[arm]: band for arm, band in shown.items()}
    below = "mean and each of two seeds" if first.runs else "mean and 95% interval over seeds"
    return draw_metric(
        metric, [names.get(arm, arm) for arm in arms], bands, below, 0.0 if DIFFERENCE in metric else None
    )


def draw_metric(
    metric: str, names: Sequence[str], bands: Mapping[str, Band], below: str, margin: float | None = None
) -> Panel:
    """The panel of one metric, in the unit that its column is read in."""
    factor = find_factor(metric)
    unit = "" if factor == 1.0 else "points; "
    scaled = {name: scale_band(band, factor) for name, band in bands.items()}
    return draw_panel(metric, names, scaled, f"{unit}{below}", margin=margin)


def reaches(band: Band) -> bool:
    """Whether the curve goes beyond the start: a checkpoint that is evaluated once has none."""
    return max(band.tokens, default=0.0) > 0.0


def draw_panel(
    metric: str,
    names: Sequence[str],
    bands: Mapping[str, Band],
    below: str,
    across: str = "input tokens",
    top: float | None = None,
    margin: float | None = None,
) -> Panel:
    """Curves by name, in the colors of their places in `names`.

    Args:
        below: a line below the heading.
        across: what the horizontal axis shows.
        top: the highest value that is drawn; by default one above all but the highest values.
        margin: of effects: zero is drawn as a line, what lies within the margin is shaded, and no value is cut off.
    """
    drawn = {
        name
        for name, band in bands.items()
        if any(value is not None for run in (band.mean, *band.runs) for value in run)
    }
    key = [name for name in names if name in drawn]
    args = (names, bands, across, top, margin)
    return Panel(f"{metric} against {across}", metric, _SIZE, _draw, below, args=args, key=key)


def _draw(
    names: Sequence[str],
    bands: Mapping[str, Band],
    across: str,
    top: float | None,
    margin: float | None,
    axes: Axes,
) -> None:
    parts = (part for band in bands.values() for part in (band.mean, band.ci_low, band.ci_high, *band.runs))
    values = sorted(value for part in parts for value in part if value is not None)
    if margin is not None:
        set_limits(axes, "y", [0.0, margin, -margin, *values])
        draw_margin(axes, margin)
    else:
        high = values[min(len(values) - 1, int((1 - _QUANTILE) * len(values)))] if top is None else top
        set_limits(axes, "y", [values[0], high], room=0.05)
    set_limits(axes, "x", [0.0, *(value for band in bands.values() for value in band.tokens)], room=0.02)
    axes.set_xlabel(across)
    axes.grid(axis="y")
    apart = set_apart(axes, {name: band.tokens[0] for name, band in bands.items() if len(band.tokens) == 1}, _ROOM)
    for at, name in enumerate(names):
        if name in bands:
            _draw_curve(axes, name, bands[name], get_style(at), apart.get(name, axes.transData))


def _draw_curve(axes: Axes, name: str, band: Band, style: Mapping[str, Any], transform: Any) -> None:
    """A band around the mean if there are two intervals or more, one interval as a bar, and each of two runs."""
    color = style["color"]
    rows = zip(band.tokens, band.ci_low, band.ci_high, strict=True)
    ends = [(token, low, high) for token, low, high in rows if low is not None and high is not None]
    if len(ends) > 1:
        tokens, lows, highs = zip(*ends, strict=True)
        axes.fill_between(tokens, lows, highs, color=color, alpha=0.18, linewidth=0)
    for token, low, high in ends if len(ends) == 1 else ():
        axes.plot((token, token), (low, high), color=color, transform=transform)
    label: str | None = name
    for values, width in ((band.mean, 1.3), *((run, 0.45) for run in band.runs)):
        points = [(token, value) for token, value in zip(band.tokens, values, strict=True) if value is not None]
        if not points:  # there is no mean where the runs logged at different numbers of tokens
            continue
        look = {**style, "linewidth": width, "markersize": 2 + 2.2 * width, "transform": transform}
        look |= {"linestyle": ""} if len(points) == 1 else {}
        look |= {"marker": ""} if len(points) > _FEW else {}
        axes.plot(*zip(*points, strict=True), **look, label=label)
        label = None  # the key names a curve once


DRAWINGS.add(Drawing("curves", "learning curves", draw_curves, 3))
