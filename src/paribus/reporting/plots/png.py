"""A scene as PNG or PDF: the same shapes drawn by matplotlib; the same bytes for the same scene and version."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from importlib import import_module, metadata
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.core.errors import UserError
from paribus.core.files import user_cache, write_cached
from paribus.reporting.plots.scene import COLORS, Area, Item, Label, Line, Mark, Points, Scene
from paribus.reporting.plots.svg import OPEN, OUTLINES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CODE = (__name__, "paribus.reporting.plots.scene", "paribus.reporting.plots.svg")  # what decides on a picture
_SEAL = 32  # bytes of the hash before a picture in the cache
_MOST = 1000  # pictures in the cache, of 40 kilobytes each
_DOTS = 200  # an inch; a pixel of a scene is 1/100 inch
_COLORS = 256  # in the palette; half of them are the picture's most frequent ones
_PLACE = (1 << 16, 1 << 8, 1)  # of red, green and blue in a color as one number
_POINT = 0.72  # typographic points in a pixel of a scene


def render_png(scene: Scene) -> bytes:
    """The picture on white, two dots for each pixel of the scene. One that was drawn before is read from the cache."""
    path = user_cache("plots") / f"{_find_name(scene)}.png"
    with suppress(OSError):
        seal, picture = (stored := path.read_bytes())[:_SEAL], stored[_SEAL:]
        if sha256(picture).digest() == seal:
            return picture
    picture = _draw_png(scene)
    with suppress(UserError):  # a folder that cannot be written
        write_cached(path, sha256(picture).digest() + picture, _MOST)
    return picture


def _find_name(scene: Scene) -> str:
    """A hash of all that decides on the picture."""
    code = [Path(module.__file__ or "").read_bytes() for module in map(import_module, _CODE)]
    versions = [metadata.version(name) for name in ("matplotlib", "pillow", "numpy")]
    return sha256(repr((scene, versions, code)).encode()).hexdigest()


def _draw_png(scene: Scene) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with _defaults():
        canvas: Any = FigureCanvasAgg(_draw_figure(scene))
        canvas.draw()
        return _pack(canvas.buffer_rgba())


def render_pdf(scene: Scene) -> bytes:
    """The picture as a page with its fonts, without a date."""
    import matplotlib

    buffer = io.BytesIO()
    with _defaults():
        matplotlib.rcParams["pdf.fonttype"] = 42
        _draw_figure(scene).savefig(buffer, format="pdf", metadata={"CreationDate": None})
    return buffer.getvalue()


@contextmanager
def _defaults() -> Iterator[None]:
    """Within the block, matplotlib's own settings, and no warning about a character that its font lacks."""
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ ")
        matplotlib.rcdefaults()
        yield


def _draw_figure(scene: Scene) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(scene.width / 100, scene.height / 100), dpi=_DOTS)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0, scene.width)
    axes.set_ylim(scene.height, 0)
    axes.axis("off")
    for circle, group in groupby(enumerate(scene.items), key=lambda pair: _circle(pair[1])):
        if circle is not None:
            _circles(axes, circle, list(group))
        else:
            for at, item in group:
                _draw(axes, item, at)
    return figure


def _pack(pixels: memoryview) -> bytes:
    """Pixels as a PNG with a palette: half the size or less, with no visible difference.

    What is flat keeps its color: bands that overlap make so many shades that an even palette would confuse two bands.
    """
    import numpy as np
    from PIL import Image

    rows = np.asarray(pixels)[..., :3]
    image = Image.fromarray(rows)
    found = sorted(image.getcolors(image.width * image.height), key=lambda pair: (-pair[0], pair[1]))
    colors = np.array([color for _, color in found])
    flat = colors[: _COLORS // 2]
    even = image.quantize(_COLORS - len(flat), Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).getpalette() or []
    palette = np.concatenate([flat, np.reshape(even, (-1, 3))])
    places = np.zeros(1 << 24, np.uint8)
    places[colors @ _PLACE] = ((colors[:, None] - palette) ** 2).sum(2).argmin(1)
    packed = Image.fromarray(places[rows @ np.array(_PLACE)])
    packed.putpalette(palette.astype(np.uint8).tobytes())
    buffer = io.BytesIO()
    packed.save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()


def _circle(item: Item) -> tuple[str, float, bool] | None:
    """What circles of one look share; None for other items."""
    return (item.color, item.size, item.filled) if isinstance(item, Mark) and item.shape == "circle" else None


def _circles(axes: Axes, look: tuple[str, float, bool], group: list[tuple[int, Item]]) -> None:
    """Circles that follow each other as one artist: there may be thousands."""
    from matplotlib.lines import Line2D

    color, size, filled = look
    marks = [item for _, item in group if isinstance(item, Mark)]
    paint: dict[str, Any] = {
        "markeredgecolor": COLORS[color],
        "markerfacecolor": COLORS[color] if filled else "none",
    }
    widths: dict[str, Any] = {"markersize": size * _POINT, "markeredgewidth": 1.3 * _POINT, "zorder": group[0][0]}
    xs, ys = [mark.x for mark in marks], [mark.y for mark in marks]
    axes.add_artist(Line2D(xs, ys, linestyle="none", marker="o", **paint, **widths))


def _draw(axes: Axes, item: Item, at: int) -> None:
    if isinstance(item, Line):
        _line(axes, item.points, item.color, item.width, at, item.dash)
    elif isinstance(item, Area):
        _polygon(axes, item.points, at, facecolor=COLORS[item.color], alpha=item.opacity, edgecolor="none")
    elif isinstance(item, Mark):
        _mark(axes, item, at)
    else:
        _text(axes, item, at)


def _line(axes: Axes, points: Points, color: str, width: float, at: int, dash: tuple[float, ...] = ()) -> None:
    from matplotlib.lines import Line2D

    style: Any = (0, [length / width for length in dash]) if dash else "-"
    xs, ys = zip(*points, strict=True)
    settings = {"color": COLORS[color], "linewidth": width * _POINT, "linestyle": style, "zorder": at}
    axes.add_artist(Line2D(xs, ys, solid_capstyle="butt", **settings))


def _polygon(axes: Axes, points: Points, at: int, **paint: object) -> None:
    from matplotlib.patches import Polygon

    axes.add_artist(Polygon(points, closed=True, zorder=at, **paint))


def _mark(axes: Axes, mark: Mark, at: int) -> None:
    half, color = mark.size / 2, COLORS[mark.color]
    paint = {"facecolor": color if mark.filled else "none", "edgecolor": color, "linewidth": 1.3 * _POINT}
    if mark.shape in OPEN:
        for stroke in OPEN[mark.shape]:
            points = tuple((mark.x + half * a, mark.y + half * b) for a, b in stroke)
            _line(axes, points, mark.color, 1.8, at)
    else:
        corners = tuple((mark.x + half * a, mark.y + half * b) for a, b in OUTLINES[mark.shape])
        _polygon(axes, corners, at, **paint)


def _text(axes: Axes, label: Label, at: int) -> None:
    axes.text(
        label.x,
        label.y,
        label.text.replace("$", r"\$"),
        fontsize=label.size * _POINT,
        fontfamily="DejaVu Sans",
        fontweight="bold" if label.bold else "normal",
        color=COLORS[label.color],
        ha={"start": "left", "middle": "center", "end": "right"}[label.anchor],
        va="baseline",
        rotation=90 if label.turned else 0,
        rotation_mode="anchor",
        zorder=at,
    )
