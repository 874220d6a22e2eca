"""Effect sizes: every contrast of the claims with its interval, the margin, zero, and the published effect."""

from __future__ import annotations

from paribus.reporting.plots import axes
from paribus.reporting.plots.drawing import DRAWINGS, Drawing, View
from paribus.reporting.plots.panel import (
    RIGHT,
    TOP,
    WIDTH,
    draw_interval,
    draw_text,
    draw_title,
    format_heading,
    make_scene,
)
from paribus.reporting.plots.scene import SYMBOLS, Area, Item, Label, Line, Mark, Scene, cut_text
from paribus.reporting.tables.blocks import format_number
from paribus.reporting.tables.schema import ContrastRow, Table
from paribus.verdict.words import find_word

_ROW = 46.0
_LEFT = 18.0


def draw_effects(view: View) -> list[Scene]:
    """One panel for each column with a contrast that has a number."""
    found = [(column, _find_contrasts(view.table, column)) for column in view.table.columns]
    return [_draw_panel(view.table, column, contrasts) for column, contrasts in found if contrasts]


def _find_contrasts(table: Table, column: str) -> list[ContrastRow]:
    """The column's contrasts, each pair once, from the first claim about it."""
    kept: dict[str, ContrastRow] = {}
    for contrast in (contrast for claim in table.claims for contrast in claim.contrasts):
        if contrast.column == column and contrast.difference is not None:
            kept.setdefault(contrast.pair, contrast)
    return list(kept.values())


def _draw_panel(table: Table, column: str, contrasts: list[ContrastRow]) -> Scene:
    unit = table.about[column].factor
    ends = [value * unit for contrast in contrasts for value in _list_ends(contrast)]
    scale = axes.spread([0.0, *ends], _LEFT, RIGHT)
    bottom = TOP + _ROW * len(contrasts)
    items = [*draw_title(format_heading(table, column), "difference of the means")]
    items += axes.across(scale, bottom - 4, bottom)
    for at, contrast in enumerate(contrasts):
        items += _draw_row(table, contrast, scale, TOP + _ROW * at)
    words, end = draw_text(_write_legend(contrasts), bottom + 20)
    return make_scene([*items, *words], end, f"effects on {column} with their intervals")


def _list_ends(row: ContrastRow) -> list[float]:
    found = [value for value in (row.difference, row.ci_low, row.ci_high, row.published) if value is not None]
    return [*found, row.margin, -row.margin]


def _draw_row(table: Table, row: ContrastRow, scale: axes.Scale, top: float) -> list[Item]:
    unit, y = table.about[row.column].factor, top + 31
    margin = row.margin * unit
    band = [(-margin, top + 20), (margin, top + 20), (margin, top + 42), (-margin, top + 42)]
    items: list[Item] = [Line(((scale(0.0), top + 18), (scale(0.0), top + 46)), "ink", 1.4)]
    items += [Area(tuple((scale(x), at) for x, at in band), "s4", 0.25)] if margin else []
    value = format_number(table, row.column, row.difference, 1, sign=True)
    items.append(
        Label(_LEFT, top + 14, cut_text(f"{row.pair}: {value}, n={row.n}, {row.verdict}", WIDTH - 30, 10.5), 10.5)
    )
    if row.ci_low is not None and row.ci_high is not None:
        items += draw_interval((scale(row.ci_low * unit), y), (scale(row.ci_high * unit), y), "s0")
    items.append(Mark(scale((row.difference or 0.0) * unit), y, find_word(row.verdict).mark, "s0", 8))
    if row.published is not None:
        items.append(Mark(scale(row.published * unit), y, "diamond", "paper", 9, filled=False))
    return items


def _write_legend(contrasts: list[ContrastRow]) -> list[str]:
    shown = (find_word(verdict) for verdict in dict.fromkeys(contrast.verdict for contrast in contrasts))
    marks = "; ".join(f"{SYMBOLS[word.mark]} {word.name}" for word in shown)
    band = "; shaded: within the margin" if any(contrast.margin for contrast in contrasts) else ""
    paper = any(contrast.published is not None for contrast in contrasts)
    return [
        f"{marks}; bar: the interval that the verdict was read off{band}",
        *(["◇ the paper's own difference"] if paper else []),
    ]


DRAWINGS.add(Drawing("effects", "effect sizes", draw_effects, 2))
