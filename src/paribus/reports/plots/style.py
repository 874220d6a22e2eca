"""Colors, dashes and matplotlib's settings of all drawings. Nobody's own matplotlibrc changes them."""

from __future__ import annotations

from typing import Any, Final

from paribus.reports.plots.marks import MARKS

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
