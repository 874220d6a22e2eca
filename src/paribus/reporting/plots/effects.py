"""Effect sizes, turned so that right favors the arm that the claim names first: interval, margin, zero, the paper."""

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
    find_color,
    find_symbol,
    format_heading,
    make_scene,
)
from paribus.reporting.plots.scene import Area, Item, Label, Line, Mark, Scene, fit_label
from paribus.reporting.tables.blocks import format_number
from paribus.reporting.tables.schema import ContrastRow, Table
from paribus.reporting.turned import turn
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
    items = [*draw_title(format_heading(table, column), "right: the first arm is better")]
    items += axes.across(scale, bottom - 4, bottom)
    for at, contrast in enumerate(contrasts):
        items += _draw_row(table, contrast, scale, TOP + _ROW * at)
    words, end = draw_text(_write_legend(contrasts), bottom + 20)
    return make_scene([*items, *words], end, f"effects on {column} with their intervals")


def _list_ends(row: ContrastRow) -> list[float]:
    return [*(value for value in turn(row) if value is not None), row.margin, -row.margin]


def _draw_row(table: Table, row: ContrastRow, scale: axes.Scale, top: float) -> list[Item]:
    unit, y, found, color = table.about[row.column].factor, top + 31, turn(row), find_color(row.verdict)
    margin = row.margin * unit
    band = [(-margin, top + 20), (margin, top + 20), (margin, top + 42), (-margin, top + 42)]
    items: list[Item] = [Line(((scale(0.0), top + 18), (scale(0.0), top + 46)), "ink", 1.4)]
    items += [Area(tuple((scale(x), at) for x, at in band), "soft", 0.16)] if margin else []
    value = format_number(table, row.column, found.effect, 1, sign=True)
    text = f"{row.arm} against {row.versus}: {value}, n={row.n}, {row.verdict}"
    items.append(fit_label(Label(_LEFT, top + 14, text, 10.5), WIDTH - 30))
    if found.low is not None and found.high is not None:
        items += draw_interval((scale(found.low * unit), y), (scale(found.high * unit), y), color)
    word = find_word(row.verdict)
    items.append(Mark(scale(found.effect * unit), y, word.mark, color, 8, word.decides))
    if found.published is not None:
        items.append(Mark(scale(found.published * unit), y, "diamond", "paper", 9, filled=False))
    return items


def _write_legend(contrasts: list[ContrastRow]) -> list[str]:
    shown = (find_word(verdict) for verdict in dict.fromkeys(contrast.verdict for contrast in contrasts))
    marks = "; ".join(f"{find_symbol(word)} {word.name}" for word in shown)
    band = "; shaded: within the margin" if any(contrast.margin for contrast in contrasts) else ""
    paper = any(contrast.published is not None for contrast in contrasts)
    return [
        f"{marks}; bar: the interval behind the verdict{band}",
        *(["◇ the paper's effect"] if paper else []),
    ]


DRAWINGS.add(Drawing("effects", "effect sizes", draw_effects, 2))
