"""The effect of a contrast at each scale, side by side. Nothing is extrapolated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paribus.reports.effects import Ladder, Rung, build_ladders, name_unit
from paribus.reports.plots.panel import (
    DRAWINGS,
    LEFT,
    RIGHT,
    WIDTH,
    Drawing,
    Panel,
    TableView,
    draw_interval,
    draw_margin,
    draw_paper,
    draw_verdict,
    find_color,
    find_limits,
    find_symbol,
    fit_text,
    set_limits,
    shorten,
)
from paribus.reports.plots.style import COLORS
from paribus.reports.tables.blocks import format_value
from paribus.verdict.metrics import in_points
from paribus.verdict.rules import find_word

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = 1.7  # inches
STABILITY = {
    "stable": "The verdict is stable over the scales that decide.",
    "changes": "The verdict changes with the scale.",
    "open": "Fewer than two scales decide, so it is open whether the verdict is stable.",
}


def draw_scales(view: TableView) -> list[Panel]:
    """One panel for each contrast that was measured at two scales or more."""
    scales = [table.scale for table in view.siblings]
    return [draw_ladder(ladder, scales) for ladder in build_ladders(view.siblings) if len(ladder.rungs) > 1]


def draw_ladder(ladder: Ladder, scales: Sequence[str]) -> Panel:
    """The effect at these scales, turned so that up favors the first arm, and the paper's own as an open diamond."""
    title = f"{ladder.column}{f' ({named})' if (named := name_unit(ladder.column)) else ''}"
    pair = f"{ladder.arm} against {ladder.versus}"
    unit, (low, high) = _find_unit(ladder), find_limits(_list_shown(ladder))
    verdicts = dict.fromkeys(rung.verdict for rung in ladder.rungs)
    marks = "; ".join(f"{find_symbol(find_word(verdict))} {verdict}" for verdict in verdicts)
    band = "; shaded: within the margin" if ladder.margin else ""
    beyond = any(not low <= end * unit <= high for rung in ladder.rungs for end in _list_ends(rung))
    cut = "; a bar that ends at the edge goes on beyond it" if beyond else ""
    caption = [f"{marks}; bar: the interval behind the verdict{cut}{band}"]
    caption += ["◇ the paper's effect"] if ladder.published is not None else []
    caption += [STABILITY[ladder.stability]] if len(ladder.rungs) > 1 else []
    if (change := ladder.change) is not None and len(ladder.rungs) > 1:
        low, high = sorted((change.ci_low * unit, change.ci_high * unit))
        ends = f"{format_value(ladder.column, low)}, {format_value(ladder.column, high)}"
        moved = f"{format_value(ladder.column, change.difference * unit, sign=True)} {name_unit(ladder.column)}".strip()
        span = f"From {ladder.rungs[0].scale} to {ladder.rungs[-1].scale}"
        caption.append(f"{span} the effect moves by {moved} [{ends}] (95% interval).")
    return Panel(
        title=f"{pair} on {title}: effect at each scale",
        heading=title,
        below=f"{pair}; up: the first is better",
        size=_SIZE,
        draw=_draw,
        args=(ladder, scales),
        foot=0.62,
        caption=caption,
    )


def _find_unit(ladder: Ladder) -> float:
    """What an effect is multiplied by to be drawn."""
    return (100.0 if in_points(ladder.column) else 1.0) * (-1.0 if ladder.lower_is_better else 1.0)


def _list_shown(ladder: Ladder) -> list[float]:
    """Every effect, and the ends of its interval unless its scale decides nothing while others may decide."""
    kept = [rung for rung in ladder.rungs if not rung.barred] or ladder.rungs
    ends = [*(rung.difference for rung in ladder.rungs), *(end for rung in kept for end in _list_ends(rung))]
    ends += [end for end in (ladder.published, ladder.margin, -ladder.margin) if end is not None]
    return [0.0, *(end * _find_unit(ladder) for end in ends)]


def _list_ends(rung: Rung) -> list[float]:
    """The ends of its interval, or nothing."""
    return [] if rung.ci_low is None or rung.ci_high is None else [rung.ci_low, rung.ci_high]


def _draw(ladder: Ladder, scales: Sequence[str], axes: Axes) -> None:
    unit, wide = _find_unit(ladder), (WIDTH - LEFT - RIGHT) / len(scales)
    rungs = {rung.scale: rung for rung in ladder.rungs}
    set_limits(axes, "y", _list_shown(ladder))
    axes.set_xlim(-0.5, len(scales) - 0.5)
    axes.set_xticks(range(len(scales)), labels=scales, color=COLORS["ink"])
    axes.grid(axis="y")
    draw_margin(axes, ladder.margin * abs(unit))
    for at, (scale, label) in enumerate(zip(scales, axes.get_xticklabels(), strict=True)):
        said = "not run"
        if rung := rungs.get(scale):
            label.set_fontweight("bold")
            if ends := _list_ends(rung):
                draw_interval(axes, (at, at), [end * unit for end in ends], find_color(rung.verdict))
            draw_verdict(axes, at, rung.difference * unit, rung.verdict)
            effect = format_value(ladder.column, rung.difference * unit, sign=True)
            said = f"{effect}\nn={rung.n}\n{f'{shorten(rung.flops, 2)} FLOPs' if rung.flops else ''}"
        text = axes.annotate(
            said, (at, 0), xycoords=axes.get_xaxis_transform(), xytext=(0, -15), textcoords="offset points",
            ha="center", va="top", fontsize=6.5, color=COLORS["soft-ink"],
        )  # fmt: skip
        fit_text(text, wide + 0.06)
    if ladder.published is not None:
        draw_paper(axes, len(scales) - 0.55, ladder.published * unit, clip_on=False)


DRAWINGS.add(Drawing("scales", "effect at each scale", draw_scales, 5))
