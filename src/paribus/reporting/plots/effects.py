"""Effect sizes: every contrast of the claims with its interval, the margin, zero, and the published effect."""

from __future__ import annotations

from typing import Any

from paribus.reporting.plots import axes
from paribus.reporting.plots.panel import RIGHT, TOP, WIDTH, Table, factor, heading, said, scene, titled, whiskers
from paribus.reporting.plots.scene import Area, Item, Label, Line, Mark, Scene, fitting
from paribus.reporting.tables.words import number

_ROW = 46.0
_LEFT = 18.0
VERDICTS = {"reproduced": "circle", "contradicted": "cross", "equivalent": "diamond", "undecided": "square"}


def panels(table: Table) -> list[Scene]:
    """One panel for each column with a contrast that has a number."""
    found = [(column, _contrasts(table, column)) for column in table["columns"]]
    return [_panel(table, column, contrasts) for column, contrasts in found if contrasts]


def _contrasts(table: Table, column: str) -> list[dict[str, Any]]:
    """The column's contrasts, each pair once, as the first claim about it says."""
    kept: dict[tuple[str, str], dict[str, Any]] = {}
    for claim in table["claims"]:
        for contrast in claim["contrasts"]:
            if contrast["column"] == column and contrast["difference"] is not None:
                kept.setdefault((contrast["arm"], contrast["versus"]), contrast)
    return list(kept.values())


def _panel(table: Table, column: str, contrasts: list[dict[str, Any]]) -> Scene:
    unit = factor(table, column)
    ends = [value * unit for contrast in contrasts for value in _numbers(contrast)]
    scale = axes.spread([0.0, *ends], _LEFT, RIGHT)
    bottom = TOP + _ROW * len(contrasts)
    items = [*titled(heading(table, column), "difference of the means"), *axes.across(scale, bottom - 4, bottom)]
    for at, contrast in enumerate(contrasts):
        items += _row(table, column, contrast, scale, TOP + _ROW * at)
    words, end = said(_legend(contrasts), bottom + 20)
    return scene([*items, *words], end, f"effects on {column} with 95 % intervals")


def _numbers(contrast: dict[str, Any]) -> list[float]:
    named = ("difference", "ci_low", "ci_high", "published")
    found = [float(contrast[name]) for name in named if contrast.get(name) is not None]
    return [*found, contrast["margin"], -contrast["margin"]]


def _row(table: Table, column: str, contrast: dict[str, Any], scale: axes.Scale, top: float) -> list[Item]:
    unit, y = factor(table, column), top + 31
    margin = contrast["margin"] * unit
    band = [(-margin, top + 20), (margin, top + 20), (margin, top + 42), (-margin, top + 42)]
    items: list[Item] = [Line(((scale(0.0), top + 18), (scale(0.0), top + 46)), "ink", 1.4)]
    items += [Area(tuple((scale(x), at) for x, at in band), "s4", 0.25)] if margin else []
    value = number(table, column, contrast["difference"], 1, sign=True)
    text = f"{contrast['arm']} - {contrast['versus']}: {value}, n={contrast['n']}, {contrast['verdict']}"
    items.append(Label(_LEFT, top + 14, fitting(text, WIDTH - 30, 10.5), 10.5))
    if contrast["ci_low"] is not None:
        low, high = (scale(contrast[end] * unit) for end in ("ci_low", "ci_high"))
        items += whiskers((low, y), (high, y), "s0")
    items.append(Mark(scale(contrast["difference"] * unit), y, VERDICTS.get(contrast["verdict"], "square"), "s0", 8))
    if contrast.get("published") is not None:
        items.append(Mark(scale(contrast["published"] * unit), y, "diamond", "paper", 9, filled=False))
    return items


def _legend(contrasts: list[dict[str, Any]]) -> list[str]:
    shapes = {"circle": "●", "cross": "×", "diamond": "◆", "square": "■"}
    shown = dict.fromkeys(contrast["verdict"] for contrast in contrasts)
    marks = "; ".join(f"{shapes[VERDICTS[verdict]]} {verdict}" for verdict in shown if verdict in VERDICTS)
    paper = any(contrast.get("published") is not None for contrast in contrasts)
    band = any(contrast["margin"] for contrast in contrasts)
    lines = [f"{marks}; bar: 95 % interval" + ("; shaded: within the margin" if band else "")]
    return [*lines, "◇ the paper's own difference"] if paper else lines
