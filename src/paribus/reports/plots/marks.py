"""The shapes of points: of series and verdicts, in drawings, in text and in HTML."""

from __future__ import annotations

from typing import Any, Final, NamedTuple


class Mark(NamedTuple):
    """A shape. `marker`: of matplotlib; `symbol`, `hollow`: its letter; `path`: of an SVG from -7 to 7."""

    marker: Any
    symbol: str
    hollow: str
    path: str
    filled: bool = True

    @property
    def edge(self) -> float:
        """The width of its lines in points."""
        return 0.9 if self.filled else 1.3


MARKS: Final = {
    "square": Mark("s", "■", "□", "M-3.9-3.9H3.9V3.9H-3.9Z"),
    "circle": Mark("o", "●", "○", "M-4.4 0a4.4 4.4 0 1 0 8.8 0a4.4 4.4 0 1 0-8.8 0Z"),
    "up": Mark("^", "▲", "△", "M0-5.1L4.6 3.7H-4.6Z"),
    "diamond": Mark("D", "◆", "◇", "M0-5.3L5.3 0 0 5.3-5.3 0Z"),
    "down": Mark("v", "▼", "▽", "M0 5.1L4.6-3.7H-4.6Z"),
    "cross": Mark("x", "×", "×", "M-4-4L4 4M-4 4L4-4", filled=False),
    "plus": Mark("+", "+", "+", "M-4.8 0H4.8M0-4.8V4.8", filled=False),
    "bar": Mark(((-0.5, -1.0), (0.5, -1.0), (0.5, 1.0), (-0.5, 1.0)), "▮", "▮", "M-2-5.3H2V5.3H-2Z"),
}


def render_mark(shape: str, filled: bool = True) -> str:
    """A mark as an HTML element in the color of the text around it."""
    mark = MARKS[shape]
    paint = 'fill="currentColor"' if filled and mark.filled else 'fill="none"'
    paint += f' stroke="currentColor" stroke-width="{1.4 if mark.filled else 2.2}"'
    size = 'viewBox="-7 -7 14 14" width="14" height="14"'
    return f'<svg class="mark" {size} aria-hidden="true"><path d="{mark.path}" {paint}/></svg>'
