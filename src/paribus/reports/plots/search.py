"""A search with Optuna: values over trials, the Pareto front, and how much each parameter matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from paribus.reports.plots.panel import NAMES, Panel, name_row, set_limits
from paribus.reports.plots.style import COLORS, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE, _ROW = 1.7, 0.18  # inches
_WIDE = 4.0  # ratio of values from which on an axis is logarithmic


def draw_history(rows: Sequence[tuple[int, float, float]], objective: str) -> Panel:
    """Values and the best so far; rows: (trial, its value, the best so far)."""

    def draw(axes: Axes) -> None:
        trials, values, best = zip(*rows, strict=True)
        set_limits(axes, "x", [0.0, *trials], room=0.03)
        set_limits(axes, "y", values)
        axes.set_xlabel("trial")
        axes.grid(axis="y")
        axes.step(trials, best, where="post", color=SERIES[0])
        axes.plot(trials, values, "o", color=SERIES[1], markersize=4.3)

    return Panel(f"{objective} against trials", objective, _SIZE, draw, "each trial, and the best so far")


def draw_front(points: Sequence[tuple[int, float, float, bool]], names: Sequence[str]) -> Panel:
    """Two objectives; points: (trial, first value, second value, whether no other trial beats it in both)."""

    def draw(axes: Axes) -> None:
        across = [first for _, first, _, _ in points]
        log = min(across) > 0 and max(across) > _WIDE * min(across)
        set_limits(axes, "x", across, log=log, ticks=3)
        set_limits(axes, "y", [second for _, _, second, _ in points])
        axes.set_xlabel(names[0])
        axes.grid(axis="y")
        for _, first, second, best in points:
            axes.plot(first, second, "o", color=SERIES[0], markerfacecolor=SERIES[0] if best else "none")

    below = "each trial; filled: no other trial beats it in both"
    return Panel(f"{names[1]} against {names[0]}", names[1], _SIZE, draw, below)


def draw_importances(shares: Mapping[str, float], objective: str) -> Panel:
    """A bar for each parameter: its share (0 to 1) of the variance of an objective."""

    def draw(axes: Axes) -> None:
        bars = axes.barh(range(len(shares)), list(shares.values()), height=0.6, color=SERIES[0])
        axes.bar_label(bars, [f"{share:.0%}" for share in shares.values()], padding=4, color=COLORS["soft-ink"])
        axes.set(xlim=(0, 1.2), ylim=(len(shares) - 0.5, -0.5))
        axes.set_axis_off()
        for at, name in enumerate(shares):
            name_row(axes, at, name)

    below = "share of the variance that each parameter explains (fANOVA)"
    title, size = f"importance for {objective}", _ROW * len(shares)
    return Panel(title, objective, size, draw, below, left=NAMES, foot=0.0)
