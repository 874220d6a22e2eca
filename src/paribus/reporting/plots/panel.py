"""Shared parts of panels: the size, a heading, a key, and the names of columns."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Final

from paribus.reporting.plots import axes
from paribus.reporting.plots.scene import (
    COLORS,
    HOLLOW,
    SYMBOLS,
    Area,
    Item,
    Label,
    Line,
    Mark,
    Scene,
    fit_label,
    get_style,
    wrap_text,
)
from paribus.reporting.tables.schema import Table
from paribus.verdict.words import Word, find_word

WIDTH: Final = 360.0
LEFT: Final = 56.0  # of a panel with numbers on its left
NAMES: Final = 136.0  # of a panel with names on its left
RIGHT: Final = WIDTH - 14.0
TOP: Final = 42.0


def format_heading(table: Table, column: str) -> str:
    """A column with its direction and unit, and a mark if it decides no claim."""
    about = table.about[column]
    unit = " (points)" if about.unit == "points" else ""
    return f"{column} {'↑' if about.higher_is_better else '↓'}{unit}{'' if about.decides else ' †'}"


def find_color(verdict: str) -> str:
    """The name of a verdict's color; a verdict with its own CSS color is drawn in ink."""
    name = find_word(verdict).color.removeprefix("var(--").removesuffix(")")
    return name if name in COLORS else "ink"


def find_symbol(word: Word) -> str:
    """The letter for a verdict's mark, hollow if it decides nothing."""
    return SYMBOLS[word.mark] if word.decides else HOLLOW.get(word.mark, SYMBOLS[word.mark])


def draw_title(text: str, below: str = "") -> list[Item]:
    """A heading of a panel, and a smaller line below it."""
    items: list[Item] = [fit_label(Label(10, 18, text, 12.5, bold=True), WIDTH - 20)]
    return [*items, fit_label(Label(10, 33, below, 10, color="soft"), WIDTH - 20)] if below else items


def draw_key(
    names: Sequence[str], top: float, lines: Container[str] = (), drawn: Container[str] | None = None
) -> tuple[list[Item], float]:
    """(markers, or pieces of lines for the names in `lines`, with their names in two columns; the bottom of them).

    `drawn`: the names that the panel shows, by default all; a name keeps the style of its place among all of them.
    """
    items: list[Item] = []
    shown = [(place, name) for place, name in enumerate(names) if drawn is None or name in drawn]
    wide = WIDTH if len(shown) == 1 else WIDTH / 2
    for at, (place, name) in enumerate(shown):
        x, y = 12 + (at % 2) * (WIDTH / 2 - 6), top + 15 * (at // 2) + 12
        color, shape, dash = get_style(place)
        items.append(
            Line(((x - 2, y - 4), (x + 22, y - 4)), color, 2, dash)
            if name in lines
            else Mark(x + 10, y - 4, shape, color, 7)
        )
        items.append(fit_label(Label(x + 27, y, name, 10), wide - 44))
    return items, top + 15 * ((len(shown) + 1) // 2) + 6


def draw_text(lines: Sequence[str], top: float) -> tuple[list[Item], float]:
    """(small text in lines that fit the panel; the bottom of them)."""
    rows = [row for line in lines for row in wrap_text(line, WIDTH - 20, 9.5)]
    items: list[Item] = [Label(10, top + 12 + 13 * at, row, 9.5, color="soft") for at, row in enumerate(rows)]
    return items, top + 13 * len(rows) + (8 if rows else 0)


def draw_interval(low: tuple[float, float], high: tuple[float, float], color: str, width: float = 1.8) -> list[Item]:
    """An interval between two points with caps at its ends; horizontal or vertical."""
    flat = low[1] == high[1]
    caps = [Line(((x, y - 4), (x, y + 4)) if flat else ((x - 4, y), (x + 4, y)), color, width) for x, y in (low, high)]
    return [Line((low, high), color, width), *caps]


def draw_margin(y: axes.Scale, margin: float) -> list[Item]:
    """Zero on a vertical scale of effects, and what lies within the margin as a shaded band."""
    corners = ((LEFT, y(margin)), (RIGHT, y(margin)), (RIGHT, y(-margin)), (LEFT, y(-margin)))
    zero = Line(((LEFT, y(0.0)), (RIGHT, y(0.0))), "ink", 1.4)
    return [Area(corners, "soft", 0.16), zero] if margin else [zero]


def make_scene(items: Sequence[Item], bottom: float, title: str) -> Scene:
    """A panel that ends a little below `bottom`."""
    return Scene(WIDTH, bottom + 8, tuple(items), title)
