"""A search with Optuna: values over trials, the Pareto front, and how much each parameter matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from paribus.reporting.plots import axes
from paribus.reporting.plots.panel import LEFT, NAMES, RIGHT, TOP, draw_title, make_scene
from paribus.reporting.plots.scene import Item, Label, Line, Mark, Scene, fit_label

_HEIGHT, _ROW = 170.0, 18.0
_WIDE = 4.0  # ratio of values from which on an axis is logarithmic
_BAR = 11.0


def draw_history(rows: Sequence[tuple[int, float, float]], objective: str) -> Scene:
    """Values and the best so far; rows: (trial, its value, the best so far)."""
    bottom = TOP + _HEIGHT
    x = axes.spread([0.0, *(trial for trial, _, _ in rows)], LEFT, RIGHT, room=0.03)
    y = axes.spread([value for _, value, _ in rows], bottom, TOP)
    items = [*draw_title(objective, "each trial, and the best so far"), *axes.up(y, LEFT, RIGHT)]
    items += axes.across(x, bottom, bottom)
    items.append(Line(_step([(x(trial), y(best)) for trial, _, best in rows]), "s0", 1.8))
    items += [Mark(x(trial), y(value), "circle", "s1", 6) for trial, value, _ in rows]
    return make_scene([*items, _name_axis("trial", bottom)], bottom + 30, f"{objective} against trials")


def draw_front(points: Sequence[tuple[int, float, float, bool]], names: Sequence[str]) -> Scene:
    """Two objectives; points: (trial, first value, second value, whether no other trial beats it in both)."""
    bottom = TOP + _HEIGHT
    across = [first for _, first, _, _ in points]
    log = min(across) > 0 and max(across) > _WIDE * min(across)
    x = axes.spread(across, LEFT, RIGHT, log=log)
    y = axes.spread([second for _, _, second, _ in points], bottom, TOP)
    items = [*draw_title(names[1], "each trial; filled: no other trial beats it in both"), *axes.up(y, LEFT, RIGHT)]
    items += axes.across(x, bottom, bottom, 3)
    items += [Mark(x(first), y(second), "circle", "s0", 7, best) for _, first, second, best in points]
    return make_scene([*items, _name_axis(names[0], bottom)], bottom + 30, f"{names[1]} against {names[0]}")


def draw_importances(shares: Mapping[str, float], objective: str) -> Scene:
    """A bar for each parameter: its share (0 to 1) of the variance of an objective."""
    items = draw_title(objective, "share of the variance that each parameter explains (fANOVA)")
    widest = RIGHT - 36.0
    for at, (name, share) in enumerate(shares.items()):
        y = TOP + 8 + _ROW * at
        end = NAMES + max(1.0, share * (widest - NAMES))
        items.append(fit_label(Label(NAMES - 8, y + 4, name, 10, "end"), NAMES - 14))
        items.append(Line(((NAMES, y), (end, y)), "s0", _BAR))
        items.append(Label(end + 6, y + 4, f"{share:.0%}", 10, color="soft"))
    return make_scene(items, TOP + _ROW * len(shares), f"importance for {objective}")


def _step(points: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Points joined by steps."""
    found = list(points[:1])
    for (_, before), point in pairwise(points):
        found += [(point[0], before), point]
    return tuple(found)


def _name_axis(name: str, bottom: float) -> Item:
    return Label((LEFT + RIGHT) / 2, bottom + 28, name, 10, "middle", "soft")
