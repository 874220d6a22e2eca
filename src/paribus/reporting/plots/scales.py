"""The effect of a contrast at each scale, side by side. Nothing is extrapolated."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.reporting.ladder import Ladder, Rung, build_ladders
from paribus.reporting.plots import axes
from paribus.reporting.plots.drawing import DRAWINGS, Drawing, View
from paribus.reporting.plots.panel import (
    LEFT,
    RIGHT,
    TOP,
    draw_interval,
    draw_margin,
    draw_text,
    draw_title,
    find_color,
    find_symbol,
    make_scene,
)
from paribus.reporting.plots.scene import Item, Label, Line, Mark, Scene, fit_label
from paribus.reporting.tables.blocks import format_value
from paribus.reporting.turned import name_unit
from paribus.verdict.metrics import in_points
from paribus.verdict.words import find_word

_HEIGHT = 170.0
STABILITY = {
    "stable": "The verdict is stable over the scales that decide.",
    "changes": "The verdict changes with the scale.",
    "open": "Fewer than two scales decide, so it is open whether the verdict is stable.",
}


def draw_scales(view: View) -> list[Scene]:
    """One panel for each contrast that was measured at two scales or more."""
    scales = [table.scale for table in view.siblings]
    return [draw_ladder(ladder, scales) for ladder in build_ladders(view.siblings) if len(ladder.rungs) > 1]


def draw_ladder(ladder: Ladder, scales: Sequence[str]) -> Scene:
    """The effect at these scales, turned so that up favors the first arm, and the paper's own as an open diamond."""
    unit, turn = 100.0 if in_points(ladder.column) else 1.0, -1.0 if ladder.lower_is_better else 1.0
    bottom, wide = TOP + _HEIGHT, (RIGHT - LEFT) / len(scales)
    y = _make_scale(ladder, unit * turn, bottom)
    title = f"{ladder.column}{f' ({named})' if (named := name_unit(ladder.column)) else ''}"
    pair = f"{ladder.arm} against {ladder.versus}"
    items = [*draw_title(title, f"{pair}; up: the first is better"), *axes.up(y, LEFT, RIGHT)]
    items += draw_margin(y, ladder.margin * unit)
    items.append(Line(((LEFT, bottom), (RIGHT, bottom)), "soft", 1))
    rungs = {rung.scale: rung for rung in ladder.rungs}
    for at, scale in enumerate(scales):
        x = LEFT + wide * (at + 0.5)
        items.append(fit_label(Label(x, bottom + 16, scale, 10.5, "middle", bold=scale in rungs), wide))
        items += _draw_rung(rungs.get(scale), ladder.column, x, wide, y, unit * turn)
    if ladder.published is not None:
        items.append(Mark(RIGHT - 4, y(ladder.published * unit * turn), "diamond", "paper", 9, filled=False))
    words, end = draw_text(_write_legend(ladder, unit * turn, y), bottom + 60)
    return make_scene([*items, *words], end, f"{pair} on {title}: effect at each scale")


def _make_scale(ladder: Ladder, unit: float, bottom: float) -> axes.Scale:
    """Room for every effect, but not for the interval of a scale that decides nothing, if others may decide."""
    kept = [rung for rung in ladder.rungs if not rung.barred] or ladder.rungs
    found = [*(rung.difference for rung in ladder.rungs), *(end for rung in kept for end in _list_ends(rung))]
    ends = [*found, *(end for end in (ladder.published, ladder.margin, -ladder.margin) if end is not None)]
    return axes.spread([0.0, *(value * unit for value in ends)], bottom, TOP)


def _list_ends(rung: Rung) -> list[float]:
    """The ends of its interval, or nothing."""
    return [] if rung.ci_low is None or rung.ci_high is None else [rung.ci_low, rung.ci_high]


def _draw_rung(rung: Rung | None, column: str, x: float, wide: float, y: axes.Scale, unit: float) -> list[Item]:
    bottom = y.start
    if rung is None:
        return [fit_label(Label(x, bottom + 30, "not run", 9, "middle", "soft"), wide)]
    color = find_color(rung.verdict)
    items: list[Item] = []
    if ends := [(x, y(min(max(end * unit, y.low), y.high))) for end in _list_ends(rung)]:
        items += draw_interval(ends[0], ends[1], color)
    word = find_word(rung.verdict)
    items.append(Mark(x, y(rung.difference * unit), word.mark, color, 8, word.decides))
    effect = format_value(column, rung.difference * unit, sign=True)
    below = [effect, f"n={rung.n}", f"{axes.short(rung.flops, 2)} FLOPs" if rung.flops else ""]
    return [
        *items,
        *(
            fit_label(Label(x, bottom + 30 + 12 * at, text, 9, "middle", "soft"), wide + 6)
            for at, text in enumerate(below)
        ),
    ]


def _write_legend(ladder: Ladder, unit: float, y: axes.Scale) -> list[str]:
    verdicts = dict.fromkeys(rung.verdict for rung in ladder.rungs)
    several = [STABILITY[ladder.stability], _describe_change(ladder, unit)] if len(ladder.rungs) > 1 else []
    marks = "; ".join(f"{find_symbol(find_word(verdict))} {verdict}" for verdict in verdicts)
    band = "; shaded: within the margin" if ladder.margin else ""
    beyond = any(not y.low <= end * unit <= y.high for rung in ladder.rungs for end in _list_ends(rung))
    cut = "; a bar that ends at the edge goes on beyond it" if beyond else ""
    shown = [f"{marks}; bar: the interval behind the verdict{cut}{band}"]
    shown += ["◇ the paper's effect"] if ladder.published is not None else []
    return [*shown, *several]


def _describe_change(ladder: Ladder, unit: float) -> str:
    change, rungs = ladder.change, ladder.rungs
    if change is None:
        return ""
    low, high = sorted((change.ci_low * unit, change.ci_high * unit))
    ends = ", ".join(format_value(ladder.column, end) for end in (low, high))
    moved = f"{format_value(ladder.column, change.difference * unit, sign=True)} {name_unit(ladder.column)}".strip()
    return f"From {rungs[0].scale} to {rungs[-1].scale} the effect moves by {moved} [{ends}] (95% interval)."


DRAWINGS.add(Drawing("scales", "effect at each scale", draw_scales, 5))
