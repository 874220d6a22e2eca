"""A drawing as plain shapes in pixels, origin at the top left. Colors are names, so that a page can redefine them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

Points = tuple[tuple[float, float], ...]

# Okabe and Ito's colors, which color-blind readers tell apart; in grey the markers and dashes tell them apart
SERIES: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B07D00", "#3B9BD1", "#5B5B5B", "#7A4FBF")
COLORS: Final = {
    **{f"s{at}": color for at, color in enumerate(SERIES)},
    "ink": "#1b1f24",
    "soft": "#5c6570",
    "grid": "#dde1e6",
    "paper": "#1b1f24",
    "anchor": "#007A58",
    "good": "#0a6b4f",
    "bad": "#a8340b",
    "same": "#4b4fa8",
    "open": "#6b5a00",
    "idle": "#5c6570",
    "none": "none",
}
SYMBOLS: Final = {
    "square": "■", "circle": "●", "up": "▲", "diamond": "◆", "down": "▼", "cross": "×", "plus": "+", "bar": "▮",
}  # fmt: skip
HOLLOW: Final = {"square": "□", "circle": "○", "up": "△", "diamond": "◇", "down": "▽"}
SHAPES: Final = tuple(SYMBOLS)
DASHES: Final = ((), (7, 3), (2, 2), (8, 3, 2, 3), (12, 3), (4, 2, 1, 2), (1, 3), (10, 2, 2, 2, 2, 2))
_SLIM, _BROAD = frozenset(" fijlrtI.,:;|'()[]/-"), frozenset("mwMW%+=<>~≥↑↓—…")
_WIDTHS: Final = (0.37, 0.62, 0.92)  # of slim, other and broad letters in DejaVu Sans, in font sizes
_BOLD = 1.1  # times as wide


class Line(NamedTuple):
    """An open line through points."""

    points: Points
    color: str = "ink"
    width: float = 1.2
    dash: tuple[float, ...] = ()


class Area(NamedTuple):
    """A filled shape, half transparent."""

    points: Points
    color: str
    opacity: float = 0.18


class Mark(NamedTuple):
    """A point of a shape in SHAPES."""

    x: float
    y: float
    shape: str = "circle"
    color: str = "ink"
    size: float = 7.0
    filled: bool = True


class Label(NamedTuple):
    """Text; `anchor`: whether its start, middle or end is at x; y is its baseline. `turned`: read from below."""

    x: float
    y: float
    text: str
    size: float = 11.0
    anchor: str = "start"
    color: str = "ink"
    bold: bool = False
    turned: bool = False


Item = Line | Area | Mark | Label


@dataclass(frozen=True)
class Scene:
    """`title`: the alternative text for readers who cannot see it."""

    width: float
    height: float
    items: tuple[Item, ...]
    title: str = ""


def get_style(at: int) -> tuple[str, str, tuple[float, ...]]:
    """(color, shape, dash) of the series with this number."""
    return f"s{at % len(SERIES)}", SHAPES[at % len(SHAPES)], DASHES[at % len(DASHES)]


def move(item: Item, x: float, y: float) -> Item:
    """The item shifted to the right and down."""
    if isinstance(item, Line | Area):
        return item._replace(points=tuple((a + x, b + y) for a, b in item.points))
    return item._replace(x=item.x + x, y=item.y + y)


def place_beside(scenes: Sequence[Scene], most: float = 1100.0) -> Scene:
    """Scenes in rows of at most that width."""
    items: list[Item] = []
    x = y = row = width = 0.0
    for scene in scenes:
        if x and x + scene.width > most:
            x, y, row = 0.0, y + row, 0.0
        items += [move(item, x, y) for item in scene.items]
        x, row = x + scene.width, max(row, scene.height)
        width = max(width, x)
    return Scene(width, y + row, tuple(items), "; ".join(dict.fromkeys(scene.title for scene in scenes)))


def add_heading(scene: Scene, text: str, below: str = "") -> Scene:
    """The scene below a heading, and below a line that says what it shows."""
    heads = wrap_text(text, scene.width - 20, 13, bold=True)
    lines = wrap_text(below, scene.width - 20, 10)
    top = 17.0 * len(heads)
    space = top + 9.0 + 14.0 * len(lines)
    said = [Label(10, 19 + 17 * at, head, 13, bold=True) for at, head in enumerate(heads)]
    said += [Label(10, top + 18 + 14 * at, line, 10, color="soft") for at, line in enumerate(lines)]
    items = tuple(move(item, 0.0, space) for item in scene.items)
    return replace(scene, height=scene.height + space, items=(*said, *items))


def measure_text(text: str, size: float, bold: bool = False) -> float:
    """The width of a text, within about 5%."""
    slim, other, broad = _WIDTHS
    width = sum(slim if letter in _SLIM else broad if letter in _BROAD else other for letter in text)
    return width * size * (_BOLD if bold else 1.0)


def fit_label(label: Label, width: float) -> Label:
    """The label in a type that fits the width, at most a quarter smaller, and cut if even that is too wide."""
    wide = measure_text(label.text, label.size, label.bold)
    size = label.size * min(1.0, max(0.75, width / max(1.0, wide)))
    return label._replace(text=_cut_text(label.text, width + 1e-6, size, label.bold), size=size)


def _cut_text(text: str, width: float, size: float, bold: bool) -> str:
    cuts = (text, *(text[:end] + "…" for end in range(len(text) - 1, 1, -1)))
    return next((cut for cut in cuts if measure_text(cut, size, bold) <= width), text[:1] + "…")


def wrap_text(text: str, width: float, size: float, bold: bool = False) -> list[str]:
    """Text in lines of that width at most; a longer word has a line of its own."""
    lines: list[str] = []
    for word in text.split():
        if lines and measure_text(f"{lines[-1]} {word}", size, bold) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
