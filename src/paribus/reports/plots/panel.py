"""A panel: one pair of axes with its heading, its legend and a caption. What drawings share, and their registry.

Each drawing is registered by its own module of this package, and appears wherever tables do.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from paribus.core.registry import Registry
from paribus.reports.plots.style import COLORS, MARKS
from paribus.reports.tables.schema import Table
from paribus.verdict.rules import Word, find_word

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.figure import FigureBase
    from matplotlib.text import Text
    from matplotlib.transforms import Transform

DOTS: Final = 200  # of a PNG, an inch
# in inches
WIDTH: Final = 3.6
LEFT: Final = 0.56  # beside axes with numbers on their left
NAMES: Final = 1.36  # beside axes with names on their left
RIGHT: Final = 0.14
TOP: Final = 0.42  # above the axes, for the heading
NUMBERS: Final = 0.22  # below the axes, for the numbers of a horizontal axis
NAMED: Final = 0.36  # the same, with the name of the axis
_EDGE, _BOTTOM = 0.1, 0.08
_KEY_LINE, _CAPTION_LINE = 0.131, 0.13
_KEY_NAME = 1.3  # room for a name in a legend of two columns

_LETTER, _BOLD = 0.56, 0.66  # mean width of a letter of DejaVu Sans, in font sizes
_PREFIXES: Final = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_ZERO, _OPENED = 1e-9, 0.01  # room below the first counts as none; the room around equal values near zero


@dataclass(frozen=True)
class Panel:
    """A picture of WIDTH inches.

    Args:
        title: says what it shows to readers who cannot see it.
        heading: above the axes, and `below` it a smaller line.
        size: height of the axes; left, foot: room beside and below them; all in inches.
        draw: draws onto the empty axes, given `args` before them.
        key: the names in the legend: the labels of lines that `draw` draws.
        caption: lines below the legend, which are wrapped.
    """

    title: str
    heading: str
    size: float
    draw: Callable[..., None]
    below: str = ""
    args: tuple[Any, ...] = ()
    left: float = LEFT
    foot: float = NAMED
    key: Sequence[str] = ()
    caption: Sequence[str] = ()

    def __hash__(self) -> int:
        return hash((self.title, self.heading, self.below, self.size))  # the other parts may hold lists

    @property
    def height(self) -> float:
        """Of all its parts, in inches."""
        key, caption = _KEY_LINE * self._count_key_rows(), _CAPTION_LINE * len(self._wrap_caption())
        return TOP + self.size + self.foot + key + (key and 0.05) + caption + _BOTTOM

    def draw_on(self, figure: FigureBase, height: float) -> None:
        """Draw at the top of a part of a figure that is WIDTH inches wide and `height` inches high."""

        def place(inches: float) -> float:
            return 1 - inches / height

        heading = figure.text(_EDGE / WIDTH, place(0.18), self.heading, fontsize=9.0, fontweight="bold")
        below = figure.text(_EDGE / WIDTH, place(0.33), self.below, color=COLORS["soft-ink"])
        for text in (heading, below):
            fit_text(text, WIDTH - 2 * _EDGE)
        wide, high = WIDTH - self.left - RIGHT, self.size / height
        axes = figure.add_axes((self.left / WIDTH, place(TOP + self.size), wide / WIDTH, high))
        self.draw(*self.args, axes)
        end = TOP + self.size + self.foot
        if rows := self._count_key_rows():
            # not all that `axes` would list: matplotlib leaves out a label that starts with _, as an arm's name may
            handles = {line.get_label(): line for line in axes.lines}
            legend = figure.legend(
                [handles[name] for name in self.key], self.key, ncols=math.ceil(len(self.key) / rows), loc="upper left",
                bbox_to_anchor=(_EDGE / WIDTH, place(end)), labelspacing=0.3, columnspacing=1.5, handletextpad=0.6,
            )  # fmt: skip
            for text in legend.get_texts():
                fit_text(text, _KEY_NAME if rows < len(self.key) else 2 * _KEY_NAME)
            end += _KEY_LINE * rows + 0.05
        for line in self._wrap_caption():
            end += _CAPTION_LINE
            figure.text(_EDGE / WIDTH, place(end - 0.02), line, fontsize=6.8, color=COLORS["soft-ink"])

    def _count_key_rows(self) -> int:
        """Two columns if every name fits into one, in a slightly smaller type if need be."""
        narrow = all(0.85 * measure_text(name, 7.2) < _KEY_NAME for name in self.key)
        return math.ceil(len(self.key) / 2) if narrow else len(self.key)

    def _wrap_caption(self) -> list[str]:
        return [row for line in self.caption for row in wrap_text(line, WIDTH - 2 * _EDGE, 6.8)]


def measure_text(text: str, size: float, bold: bool = False) -> float:
    """The width of a text of mixed letters in inches, about."""
    return len(text) * size * (_BOLD if bold else _LETTER) / 72


@cache
def get_measure() -> RendererAgg:
    """What measures texts: one for all panels, since it keeps the sizes of the texts that it has measured."""
    from matplotlib.backends.backend_agg import RendererAgg

    return RendererAgg(1, 1, DOTS)  # type: ignore[no-untyped-call]


def fit_text(text: Text, width: float) -> None:
    """Make a text at most a quarter smaller so that it fits the width in inches, and cut it if it must be."""
    figure: Any = text.get_figure()
    pixels, measure = width * figure.dpi, get_measure()
    share = pixels / max(text.get_window_extent(measure).width, 1.0)
    if share < 1.0:
        text.set_fontsize(float(text.get_fontsize()) * max(0.75, share))
    while share < 0.75 and text.get_window_extent(measure).width > pixels and len(text.get_text()) > 2:
        text.set_text(text.get_text()[:-2] + "…")


def wrap_text(text: str, width: float, size: float, bold: bool = False) -> list[str]:
    """Text in lines of about this width in inches at most; a longer word has a line of its own."""
    letters = math.floor(width / measure_text("n", size, bold))
    return textwrap.wrap(text, letters, break_long_words=False, break_on_hyphens=False)


def format_heading(table: Table, column: str) -> str:
    """A column with its direction and unit, and a mark if it decides no claim."""
    about = table.about[column]
    unit = " (points)" if about.unit == "points" else ""
    return f"{column} {'↑' if about.higher_is_better else '↓'}{unit}{'' if about.decides else ' †'}"


def find_color(verdict: str) -> str:
    """A verdict's color; one with its own CSS color is drawn in ink."""
    name = find_word(verdict).color.removeprefix("var(--").removesuffix(")")
    return COLORS["soft-ink"] if name == "idle" else COLORS.get(name, COLORS["ink"])


def find_symbol(word: Word) -> str:
    """The letter for a verdict's mark, hollow if it decides nothing."""
    return MARKS[word.mark].symbol if word.decides else MARKS[word.mark].hollow


def draw_verdict(axes: Axes, x: float, y: float, verdict: str) -> None:
    """The mark of a verdict in its color, hollow if it decides nothing."""
    word, color = find_word(verdict), find_color(verdict)
    paint: dict[str, Any] = {"color": color, "markerfacecolor": color if word.decides else "none"}
    axes.plot(x, y, marker=MARKS[word.mark].marker, markeredgewidth=MARKS[word.mark].edge, **paint)


def draw_paper(axes: Axes, x: float, y: float, **options: Any) -> None:
    """The paper's own value, as an open diamond."""
    axes.plot(x, y, "D", color=COLORS["ink"], markerfacecolor="none", **options)


def name_row(axes: Axes, at: float, name: str) -> None:
    """A name left of axes that leave NAMES inches of room."""
    place: dict[str, Any] = {"xycoords": axes.get_yaxis_transform(), "xytext": (-6, 0), "textcoords": "offset points"}
    text = axes.annotate(name, (0, at), **place, ha="right", va="center", fontsize=7.6)
    fit_text(text, NAMES - 0.14)


def draw_interval(axes: Axes, x: Sequence[float], y: Sequence[float], color: str, **options: Any) -> None:
    """An interval between two points with caps at its ends; horizontal or vertical."""
    cap = "|" if y[0] == y[1] else "_"
    axes.plot(x, y, color=color, marker=cap, markersize=5.8, markeredgewidth=1.2, **options)


def draw_margin(axes: Axes, margin: float) -> None:
    """Zero on a vertical axis of effects, and what lies within the margin as a shaded band."""
    if margin:
        axes.axhspan(-margin, margin, color=COLORS["soft-ink"], alpha=0.16, linewidth=0)
    axes.axhline(0.0, color=COLORS["ink"], linewidth=1.0)


def set_limits(
    axes: Axes, name: str, values: Sequence[float], room: float = 0.08, log: bool = False, ticks: int = 5
) -> None:
    """Room around the values on the axis "x" or "y", and round ticks; equal values are opened a little."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    axis = axes.xaxis if name == "x" else axes.yaxis
    if log:
        low, high = min(values), max(values)
        factor = max((high / low) ** room, 1.3)
        low, high = low / factor, high * factor
        axes.set(**{f"{name}scale": "log"})
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 1e3 * low else (1.0,)))
        axis.set_minor_locator(NullLocator())
    else:
        low, high = find_limits(values, room)
        axis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 2.5, 5, 10]))
    if log or max(abs(low), abs(high)) >= 1e4:
        axis.set_major_formatter(lambda value, _: shorten(value, 6))
    axes.set(**{f"{name}lim": (low, high)})


def find_limits(values: Sequence[float], room: float = 0.08) -> tuple[float, float]:
    """The ends of an axis with room around the values."""
    low, high = min(values), max(values)
    pad = max(room * (high - low), 0.002 * max(abs(low), abs(high)))
    pad = pad if pad > _ZERO else _OPENED
    return low - pad, high + pad


def shorten(value: float, digits: int) -> str:
    """A number as an axis shows it: 2.5M, 0.02, 18T."""
    for size, letter in _PREFIXES:
        if abs(value) >= size:
            scaled = value / size  # 290G, not 2.9e+02G
            return f"{scaled:.0f}{letter}" if abs(scaled) >= 10**digits else f"{scaled:.{digits}g}{letter}"
    return f"{value:.4g}"


def set_apart(axes: Axes, places: Mapping[str, float], room: float) -> dict[str, Transform]:
    """How names at about the same x are drawn, so that they stand side by side within `room` inches.

    Needs the final limits of the horizontal axis.
    """
    from matplotlib.transforms import ScaledTranslation

    figure = axes.figure
    inches = {name: axes.transData.transform((x, 0.0))[0] / figure.dpi for name, x in places.items()}
    groups: list[list[str]] = []
    for name in sorted(inches, key=inches.__getitem__):
        if groups and inches[name] - inches[groups[-1][0]] < 0.09:
            groups[-1].append(name)
        else:
            groups.append([name])
    transforms: dict[str, Transform] = {}
    for group in groups:
        step = min(0.1, room / len(group))
        for at, name in enumerate(group):
            right = step * (at - (len(group) - 1) / 2)
            transforms[name] = axes.transData + ScaledTranslation(right, 0.0, figure.dpi_scale_trans)
    return transforms


class TableView(NamedTuple):
    """What can be drawn: a table; on the site also all tables of its study, and the content of its flatness.json."""

    table: Table
    siblings: Sequence[Table] = ()
    landscape: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Drawing:
    """Panels for a view. `name`: of its files; `title`: its heading, formatted with `view`; `rank`: its place."""

    name: str
    title: str
    panels: Callable[[TableView], Sequence[Panel]]
    rank: int = 100


DRAWINGS: Registry[Drawing] = Registry("paribus.reports.plots")


def draw_all(view: TableView) -> Iterator[tuple[Drawing, Sequence[Panel]]]:
    """Each drawing that has something to draw, with its panels."""
    for drawing in DRAWINGS.all():
        if panels := drawing.panels(view):
            yield drawing, panels
