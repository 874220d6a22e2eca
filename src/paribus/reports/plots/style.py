"""Colors, dashes, shapes of points and matplotlib's settings. Nobody's own matplotlibrc changes them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

# Okabe and Ito's colors, which color-blind readers tell apart; in grey the markers and dashes tell them apart
SERIES: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b07d00", "#3b9bd1", "#5b5b5b", "#7a4fbf")
COLORS: Final = {
    **{f"s{at}": color for at, color in enumerate(SERIES)},
    "ink": "#1b1f24",
    "soft-ink": "#5c6570",
    "grid": "#dde1e6",
    "anchor": "#007a58",
    "good": "#0a6b4f",
    "bad": "#a8340b",
    "same": "#4b4fa8",
    "open": "#6b5a00",
}
DASHES: Final[tuple[Any, ...]] = (
    "-", (0, (4, 1.6)), (0, (1.2, 1.2)), (0, (4.5, 1.6, 1, 1.6)), (0, (7, 1.6)), (0, (2.2, 1, 0.8, 1)), (0, (0.8, 1.8)),
    (0, (5.5, 1, 1, 1, 1, 1)),
)  # fmt: skip


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
SHAPES: Final = tuple(MARKS)

STYLE: Final[Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 7.2,
    "text.color": COLORS["ink"],
    "text.hinting": "no_hinting",  # else the width of a text is not proportional to its size
    "text.parse_math": False,  # a name may hold a $
    "axes.axisbelow": True,
    "axes.edgecolor": COLORS["soft-ink"],
    "axes.facecolor": "none",
    "axes.formatter.useoffset": False,
    "axes.labelcolor": COLORS["soft-ink"],
    "axes.linewidth": 0.7,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.unicode_minus": False,  # as in the texts beside the axes
    "grid.color": COLORS["grid"],
    "grid.linewidth": 0.7,
    "legend.borderaxespad": 0.0,
    "legend.borderpad": 0.0,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "lines.markeredgewidth": 0.9,
    "lines.markersize": 5.0,
    "lines.solid_capstyle": "butt",
    "xtick.color": COLORS["soft-ink"],
    "xtick.major.size": 0.0,
    "xtick.major.pad": 4.0,
    "ytick.color": COLORS["soft-ink"],
    "ytick.major.size": 0.0,
    "ytick.major.pad": 4.0,
    "pdf.fonttype": 42,  # whole fonts: a journal's checks refuse others
    "svg.fonttype": "none",
    "svg.hashsalt": "paribus",  # else names inside an SVG differ from run to run
}


def get_style(at: int) -> dict[str, Any]:
    """Color, marker and dashes of the series with this number."""
    mark = MARKS[SHAPES[at % len(SHAPES)]]
    color, dashes = SERIES[at % len(SERIES)], DASHES[at % len(DASHES)]
    return {"color": color, "marker": mark.marker, "markeredgewidth": mark.edge, "linestyle": dashes}


def render_mark(shape: str, filled: bool = True) -> str:
    """A mark as an HTML element in the color of the text around it."""
    mark = MARKS[shape]
    paint = 'fill="currentColor"' if filled and mark.filled else 'fill="none"'
    paint += f' stroke="currentColor" stroke-width="{1.4 if mark.filled else 2.2}"'
    size = 'viewBox="-7 -7 14 14" width="14" height="14"'
    return f'<svg class="mark" {size} aria-hidden="true"><path d="{mark.path}" {paint}/></svg>'
