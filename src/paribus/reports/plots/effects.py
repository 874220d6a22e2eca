"""Effect sizes, turned so that right favors the arm that the claim names first: interval, margin, zero, the paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paribus.reports.effects import sign_effect
from paribus.reports.plots.panel import (
    DRAWINGS,
    NUMBERS,
    RIGHT,
    WIDTH,
    Drawing,
    Panel,
    TableView,
    draw_interval,
    draw_paper,
    draw_verdict,
    find_color,
    find_symbol,
    fit_text,
    format_heading,
    set_limits,
)
from paribus.reports.plots.style import COLORS
from paribus.reports.tables.blocks import format_number
from paribus.reports.tables.schema import ContrastRow, Table
from paribus.verdict.rules import find_word

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW, _LEFT = 0.46, 0.18  # inches


def draw_effects(view: TableView) -> list[Panel]:
    """One panel for each column with a contrast that has a number; each pair once, from the first claim about it."""
    table, panels = view.table, []
    for column in table.columns:
        kept: dict[str, ContrastRow] = {}
        for contrast in (contrast for claim in table.claims for contrast in claim.contrasts):
            if contrast.column == column and contrast.difference is not None:
                kept.setdefault(contrast.pair, contrast)
        if contrasts := list(kept.values()):
            shown = (find_word(verdict) for verdict in dict.fromkeys(contrast.verdict for contrast in contrasts))
            marks = "; ".join(f"{find_symbol(word)} {word.name}" for word in shown)
            band = "; shaded: within the margin" if any(contrast.margin for contrast in contrasts) else ""
            caption = [f"{marks}; bar: the interval behind the verdict{band}"]
            if any(contrast.published is not None for contrast in contrasts):
                caption.append("◇ the paper's effect")
            panel = Panel(
                title=f"effects on {column} with their intervals",
                heading=format_heading(table, column),
                below="right: the first arm is better",
                size=_ROW * len(contrasts),
                draw=_draw,
                args=(table, column, contrasts),
                left=_LEFT,
                foot=NUMBERS,
                caption=caption,
            )
            panels.append(panel)
    return panels


def _draw(table: Table, column: str, contrasts: Sequence[ContrastRow], axes: Axes) -> None:
    unit = table.about[column].factor
    ends = [end for row in contrasts for end in (*sign_effect(row), row.margin, -row.margin) if end is not None]
    set_limits(axes, "x", [0.0, *(end * unit for end in ends)])
    axes.set_ylim(len(contrasts), 0)
    axes.set_yticks([])
    for at, row in enumerate(contrasts):
        effect, low, high, published = sign_effect(row)
        value = format_number(table, column, effect, 1, sign=True)
        said = f"{row.arm} against {row.versus}: {value}, n={row.n_text}, {row.verdict}"
        fit_text(
            axes.text(0, at + 0.3, said, transform=axes.get_yaxis_transform(), fontsize=7.6), WIDTH - _LEFT - RIGHT
        )
        if row.margin:
            margin, band = row.margin * unit, (at + 0.43, at + 0.93)
            axes.fill_betweenx(band, -margin, margin, color=COLORS["soft-ink"], alpha=0.16, linewidth=0)
        axes.plot((0.0, 0.0), (at + 0.39, at + 1.0), color=COLORS["ink"], linewidth=1.0)
        if low is not None and high is not None:
            draw_interval(axes, (low * unit, high * unit), (at + 0.68, at + 0.68), find_color(row.verdict))
        draw_verdict(axes, effect * unit, at + 0.68, row.verdict)
        if published is not None:
            draw_paper(axes, published * unit, at + 0.68)


DRAWINGS.add(Drawing("effects", "effect sizes", draw_effects, 2))
