"""Learning curves: means over seeds with 95 % bands, one panel a metric."""

from __future__ import annotations

from typing import Any

from paribus.reporting.plots import axes
from paribus.reporting.plots.panel import LEFT, RIGHT, TOP, Table, key, said, scene, titled
from paribus.reporting.plots.scene import Area, Item, Label, Line, Scene, series

_HEIGHT = 190.0
_QUANTILE = 0.02  # of the values that may lie above the panel: the first steps would flatten the rest


def panels(table: Table) -> list[Scene]:
    """One panel a metric; `table["curves"]`: {metric: {arm: {tokens, mean, ci_low, ci_high, n}}}."""
    arms = [arm["name"] for arm in table["arms"]]
    said = "mean over seeds, band: 95 % interval"
    return [
        panel(
            metric,
            [f"{arm} (n={found[arm]['n']})" if arm in found else arm for arm in arms],
            {f"{arm} (n={curve['n']})": curve for arm, curve in found.items()},
            said,
        )
        for metric, found in table.get("curves", {}).items()
    ]


def panel(
    metric: str,
    names: list[str],
    found: dict[str, Any],
    below: str,
    across: str = "input tokens",
    top: float | None = None,
) -> Scene:
    """Curves by name, in the colors of their places in `names`.

    `below`: what they are; `across`: what the places, `tokens`, are; `top`: where the panel ends, by itself above all
    but the highest values.
    """
    bottom = TOP + _HEIGHT
    tokens = [value for curve in found.values() for value in curve["tokens"]]
    x = axes.spread([0.0, *tokens], LEFT, RIGHT, room=0.02)
    y = _heights(found, bottom, top)
    items = [*titled(metric, below), *axes.up(y, LEFT, RIGHT)]
    items += [item for item in axes.across(x, bottom, bottom) if not isinstance(item, Line) or item.width != 1]
    items.append(Line(((LEFT, bottom), (RIGHT, bottom)), "soft", 1))
    for at, name in enumerate(names):
        if name in found:
            items += _curve(found[name], at, x, y)
    items.append(Label((LEFT + RIGHT) / 2, bottom + 28, across, 10, "middle", "soft"))
    marks, end = key(names, bottom + 32, lines=True)
    words, end = said([], end)
    return scene([*items, *marks, *words], end, f"{metric} against {across}")


def _heights(found: dict[str, Any], bottom: float, top: float | None) -> axes.Scale:
    values = sorted(value for curve in found.values() for value in _ends(curve))
    high = values[min(len(values) - 1, int((1 - _QUANTILE) * len(values)))] if top is None else top
    return axes.spread([values[0], high], bottom, TOP, room=0.05)


def _ends(curve: dict[str, Any]) -> list[float]:
    return [value for name in ("mean", "ci_low", "ci_high") for value in curve[name] if value is not None]


def _curve(curve: dict[str, Any], at: int, x: axes.Scale, y: axes.Scale) -> list[Item]:
    color, _, dash = series(at)

    def place(token: float, value: float) -> tuple[float, float]:
        return x(token), y(min(max(value, y.low), y.high))

    items: list[Item] = []
    rows = list(zip(curve["tokens"], curve["ci_low"], curve["ci_high"], strict=True))
    banded = [(token, low, high) for token, low, high in rows if low is not None]
    if len(banded) > 1:
        above = [place(token, high) for token, _, high in banded]
        below = [place(token, low) for token, low, _ in reversed(banded)]
        items.append(Area((*above, *below), color))
    points = tuple(place(token, mean) for token, mean in zip(curve["tokens"], curve["mean"], strict=True))
    return [*items, Line(points, color, 1.8, dash)] if len(points) > 1 else items
