"""The effect of a contrast against compute, with the verdict at each scale."""

from __future__ import annotations

from paribus.reporting.ladder import Ladder, Rung, build_ladders
from paribus.reporting.plots import axes
from paribus.reporting.plots.drawing import DRAWINGS, Drawing, View
from paribus.reporting.plots.panel import LEFT, RIGHT, TOP, draw_interval, draw_text, draw_title, make_scene
from paribus.reporting.plots.scene import Area, Item, Label, Line, Mark, Scene, cut_text
from paribus.verdict.metrics import in_points

_HEIGHT = 170.0
STABILITY = {
    "stable": "The verdict is stable over the scales that decide.",
    "changes": "The verdict changes with the scale.",
    "open": "Fewer than two scales decide, so it is open whether the verdict is stable.",
}


def draw_scaling(view: View) -> list[Scene]:
    """One panel for each contrast that was measured at two scales or more."""
    return [_draw_panel(ladder) for ladder in build_ladders(view.siblings) if len(ladder.rungs) > 1]


def _draw_panel(ladder: Ladder) -> Scene:
    unit = 100.0 if in_points(ladder.column) else 1.0
    bottom = TOP + _HEIGHT
    known = all(rung.flops for rung in ladder.rungs)
    costs = [rung.flops or 0.0 for rung in ladder.rungs] if known else [10.0**at for at in range(len(ladder.rungs))]
    x = axes.spread(costs, LEFT, RIGHT, log=True, room=0.25)
    y = _make_scale(ladder, unit, bottom)
    title = f"{ladder.arm} - {ladder.versus} on {ladder.column}{' (points)' if unit == 100.0 else ''}"
    items = [*draw_title(title, "difference against the FLOPs of pre-training"), *axes.up(y, LEFT, RIGHT)]
    if ladder.margin:
        band = [(LEFT, ladder.margin), (RIGHT, ladder.margin), (RIGHT, -ladder.margin), (LEFT, -ladder.margin)]
        items.append(Area(tuple((place, y(value * unit)) for place, value in band), "s4", 0.22))
    items.append(Line(((LEFT, y(0.0)), (RIGHT, y(0.0))), "ink", 1.4))
    items += axes.across(x, bottom, bottom, 4) if known else []
    for rung, cost in zip(ladder.rungs, costs, strict=True):
        items += _draw_rung(rung, x(cost), y, unit, bottom)
    words, end = draw_text([STABILITY[ladder.stability], _describe_change(ladder, unit)], bottom + 34)
    return make_scene([*items, *words], end, f"{title}: effect against compute")


def _make_scale(ladder: Ladder, unit: float, bottom: float) -> axes.Scale:
    ends = [end for rung in ladder.rungs for end in (rung.difference, rung.ci_low, rung.ci_high) if end is not None]
    return axes.spread([value * unit for value in (0.0, ladder.margin, -ladder.margin, *ends)], bottom, TOP + 14)


def _draw_rung(rung: Rung, x: float, y: axes.Scale, unit: float, bottom: float) -> list[Item]:
    items: list[Item] = []
    if rung.ci_low is not None and rung.ci_high is not None:
        items += draw_interval((x, y(rung.ci_low * unit)), (x, y(rung.ci_high * unit)), "s0")
    items.append(Mark(x, y(rung.difference * unit), "square", "s0", 8))
    items.append(Label(x, TOP + 8, cut_text(rung.verdict, 90, 10), 10, "middle"))
    return [*items, Label(x, bottom + 29, f"{rung.scale}, n={rung.n}", 10, "middle")]


def _describe_change(ladder: Ladder, unit: float) -> str:
    change, rungs = ladder.change, ladder.rungs
    if change is None:
        return ""
    low, high = change.ci_low * unit, change.ci_high * unit
    moved = f"{change.difference * unit:+.3g} [{low:.3g}, {high:.3g}]"
    return f"From {rungs[0].scale} to {rungs[-1].scale} the effect moves by {moved} (95% interval)."


DRAWINGS.add(Drawing("scaling", "effect against compute", draw_scaling, 5))
