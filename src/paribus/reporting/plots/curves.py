"""Learning curves: means over seeds with 95% bands, one panel per metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paribus.reporting.plots import axes
from paribus.reporting.plots.drawing import DRAWINGS, Drawing, View
from paribus.reporting.plots.panel import LEFT, RIGHT, TOP, draw_key, draw_margin, draw_text, draw_title, make_scene
from paribus.reporting.plots.scene import Area, Item, Label, Line, Mark, Scene, get_style, move
from paribus.reporting.tables.curves import DIFFERENCE, find_factor, scale_band
from paribus.reporting.tables.schema import Band, Table

_HEIGHT = 190.0
_FEW = 2  # points of a curve that are drawn as marks: a line through them would look like more
_APART, _ROOM = 9.0, 40.0  # pixels between single points at the same place, and of all of them
_QUANTILE = 0.02  # of the values that may lie above the panel: the first steps would flatten the rest


def draw_curves(view: View) -> list[Scene]:
    """One panel per metric that was measured while an arm was trained."""
    drawn = ((metric, found) for metric, found in view.table.curves.items() if any(map(reaches, found.values())))
    return [_draw_arms(view.table, metric, found) for metric, found in drawn]


def _draw_arms(table: Table, metric: str, found: Mapping[str, Band]) -> Scene:
    """One curve per arm; a single one if the arms that have one share their pre-training."""
    arms = [arm.name for arm in table.arms]
    shown = {arm: found[arm] for arm in arms if arm in found}
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
    metric: str, names: Sequence[str], found: Mapping[str, Band], below: str, margin: float | None = None
) -> Scene:
    """The panel of one metric, in the unit that its column is read in."""
    factor = find_factor(metric)
    unit = "" if factor == 1.0 else "points; "
    scaled = {name: scale_band(band, factor) for name, band in found.items()}
    return draw_panel(metric, names, scaled, f"{unit}{below}", margin=margin)


def reaches(band: Band) -> bool:
    """Whether the curve goes beyond the start: a checkpoint that is evaluated once has none."""
    return max(band.tokens, default=0.0) > 0.0


def draw_panel(
    metric: str,
    names: Sequence[str],
    found: Mapping[str, Band],
    below: str,
    across: str = "input tokens",
    top: float | None = None,
    margin: float | None = None,
) -> Scene:
    """Curves by name, in the colors of their places in `names`.

    Args:
        below: a line below the heading.
        across: what the horizontal axis shows.
        top: the highest value that is drawn; by default one above all but the highest values.
        margin: of effects: zero is drawn as a line, what lies within the margin is shaded, and no value is cut off.
    """
    bottom = TOP + _HEIGHT
    tokens = [value for band in found.values() for value in band.tokens]
    x = axes.spread([0.0, *tokens], LEFT, RIGHT, room=0.02)
    y = _make_scale(found, bottom, top) if margin is None else _make_scale_of_effects(found, bottom, margin)
    items = [*draw_title(metric, below), *axes.up(y, LEFT, RIGHT)]
    items += [item for item in axes.across(x, bottom, bottom) if not isinstance(item, Line) or item.width != 1]
    items.append(Line(((LEFT, bottom), (RIGHT, bottom)), "soft", 1))
    items += [] if margin is None else draw_margin(y, margin)
    shifts = _find_shifts(found, x)
    for at, name in enumerate(names):
        if name in found:
            items += [move(item, shifts.get(name, 0.0), 0.0) for item in _draw_curve(found[name], at, x, y)]
    items.append(Label((LEFT + RIGHT) / 2, bottom + 28, across, 10, "middle", "soft"))
    lines = [name for name, band in found.items() if len(band.tokens) > 1]
    marks, end = draw_key(names, bottom + 32, lines, drawn=found)
    words, end = draw_text([], end)
    return make_scene([*items, *marks, *words], end, f"{metric} against {across}")


def _make_scale(found: Mapping[str, Band], bottom: float, top: float | None) -> axes.Scale:
    values = sorted(value for band in found.values() for value in _list_ends(band))
    high = values[min(len(values) - 1, int((1 - _QUANTILE) * len(values)))] if top is None else top
    return axes.spread([values[0], high], bottom, TOP, room=0.05)


def _make_scale_of_effects(found: Mapping[str, Band], bottom: float, margin: float) -> axes.Scale:
    ends = [value for band in found.values() for value in _list_ends(band)]
    return axes.spread([0.0, margin, -margin, *ends], bottom, TOP)


def _find_shifts(found: Mapping[str, Band], x: axes.Scale) -> dict[str, float]:
    """{name: pixels to the right} of curves with one point, so that intervals at the same place stand side by side."""
    places = [(x(band.tokens[0]), name) for name, band in found.items() if len(band.tokens) == 1]
    beside: list[list[tuple[float, str]]] = []
    for place in sorted(places, key=lambda place: place[0]):
        if beside and place[0] - beside[-1][0][0] < _APART:
            beside[-1].append(place)
        else:
            beside.append([place])
    return {
        name: min(_APART, _ROOM / len(group)) * (at - (len(group) - 1) / 2)
        for group in beside
        for at, (_, name) in enumerate(group)
    }


def _list_ends(band: Band) -> list[float]:
    parts = (band.mean, band.ci_low, band.ci_high, *band.runs)
    return [value for part in parts for value in part if value is not None]


def _draw_curve(band: Band, at: int, x: axes.Scale, y: axes.Scale) -> list[Item]:
    color, shape, dash = get_style(at)

    def place(token: float, value: float) -> tuple[float, float]:
        return x(token), y(min(max(value, y.low), y.high))

    items: list[Item] = []
    rows = zip(band.tokens, band.ci_low, band.ci_high, strict=True)
    ends = [(token, low, high) for token, low, high in rows if low is not None and high is not None]
    if len(ends) > 1:
        above = [place(token, high) for token, _, high in ends]
        below = [place(token, low) for token, low, _ in reversed(ends)]
        items.append(Area((*above, *below), color))
    else:
        items += [Line((place(token, low), place(token, high)), color, 1.8) for token, low, high in ends]
    for values, width in ((band.mean, 1.8), *((run, 0.6) for run in band.runs)):
        found = zip(band.tokens, values, strict=True)
        points = tuple(place(token, value) for token, value in found if value is not None)
        if len(points) > 1:
            items.append(Line(points, color, width, dash))
        if len(points) <= _FEW:
            items += [Mark(*point, shape, color, 3 + 2 * width) for point in points]
    return items


DRAWINGS.add(Drawing("curves", "learning curves", draw_curves, 3))
