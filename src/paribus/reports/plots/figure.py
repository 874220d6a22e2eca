"""Panels as a matplotlib figure, and a figure as SVG, PNG or PDF: the same bytes for the same table and versions.

Colors on pages: a drawing uses only the colors of COLORS, and its SVG for a page names each of them by the CSS variable
of the same name (`--ink`, `--s0`, ...). table.css sets these variables for light and for dark pages.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from paribus.reports.plots.panel import DOTS, WIDTH, Panel, wrap_text
from paribus.reports.plots.style import COLORS, STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PIXELS: Final = 100  # of a page, an inch: 7.2 points are 10 pixels there
_ROW: Final = 3  # panels beside each other in a file


def make_figure(panels: Sequence[Panel], heading: str = "", below: str = "", columns: int = _ROW) -> Figure:
    """Panels in rows of `columns` at most, under a heading and a line that says what they show."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = [panels[at : at + columns] for at in range(0, len(panels), columns)]
    columns = min(columns, len(panels))
    width, heights = columns * WIDTH, [max(panel.height for panel in row) for row in rows]
    heads = wrap_text(heading, width - 0.2, 9.4, bold=True)
    lines = wrap_text(below, width - 0.2, 7.2)
    top = 0.18 * len(heads) + 0.14 * len(lines) + 0.1 * bool(heads or lines)
    with _use_style():
        figure = Figure(figsize=(width, top + sum(heights)), dpi=DOTS)
        FigureCanvasAgg(figure)  # measures texts
        figure.set_label("; ".join(dict.fromkeys(panel.title for panel in panels)))
        grid = figure.add_gridspec(len(rows) + 1, columns, height_ratios=[max(top, 1e-6), *heights])
        for at, row in enumerate(rows):
            for place, panel in enumerate(row):
                panel.draw_on(figure.add_subfigure(grid[at + 1, place]), heights[at])
        height = figure.get_figheight()
        figure.text(0.1 / width, 1 - 0.06 / height, "\n".join(heads), fontsize=9.4, fontweight="bold", va="top")
        soft: dict[str, Any] = {"color": COLORS["soft-ink"], "va": "top"}
        figure.text(0.1 / width, 1 - (0.18 * len(heads) + 0.09) / height, "\n".join(lines), **soft)
    return figure


def render_svg(figure: Figure, **options: Any) -> str:
    """The drawing as a file, on white; its title is the text for readers who cannot see it."""
    said = {"Title": figure.get_label(), "Date": None, "Creator": None, "Format": None, "Type": None}
    svg = _render(figure, "svg", metadata=said, **options).decode()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return re.sub(r"<[^!?][^>]*>", _shorten_tag, re.sub(r">\s+<", ">\n<", svg))


def _shorten_tag(tag: re.Match[str]) -> str:
    """Numbers with two digits, and no names of groups, which would be there twice on a page with two drawings."""
    text = re.sub(r' id="(?![mpCP][0-9a-f]{5})[^"]*"| transform="rotate\(-0 [^"]*"', "", tag[0])
    return re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", " ".join(text.split()))


def render_png(figure: Figure) -> bytes:
    """The drawing on white, in 256 colors: a third of the size, with no visible difference."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    with _use_style():
        canvas: Any = FigureCanvasAgg(figure)
        canvas.draw()
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    buffer = io.BytesIO()
    picture.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def render_pdf(figure: Figure) -> bytes:
    """The drawing as a page with its fonts, without a date."""
    return _render(figure, "pdf", metadata={"CreationDate": None})


@lru_cache(maxsize=128)  # a site has the panels of a table twice: in table.html and in the page of the table
def render_inline(panel: Panel) -> str:
    """A panel as an element of a page, in the page's colors and font."""
    svg = render_svg(make_figure([panel]), transparent=True)
    size = f'width="{WIDTH * _PIXELS:.0f}" height="{panel.height * _PIXELS:.0f}" class="plot" role="img"'
    svg = re.sub(r'width="[^"]+" height="[^"]+"', size, svg[svg.index("<svg") :], count=1)
    svg = re.sub(r"<style.*?</style>|font-family: 'DejaVu Sans', sans-serif; ", "", svg)
    for name, color in COLORS.items():
        svg = svg.replace(f": {color}", f": var(--{name})")
    return svg


def _render(figure: Figure, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    with _use_style():
        figure.savefig(buffer, format=kind, **options)
    return buffer.getvalue()


@contextmanager
def _use_style() -> Iterator[None]:
    """Within the block, our settings alone, and no warning about a character that the font lacks."""
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ ")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield
