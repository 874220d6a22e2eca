"""A scene as SVG: plain attributes for any viewer, class names for pages that redefine the colors."""

from __future__ import annotations

import math
from html import escape
from itertools import starmap

from paribus.reporting.plots.scene import COLORS, Area, Item, Label, Line, Mark, Points, Scene

FONT = "system-ui, 'DejaVu Sans', sans-serif"


def render_svg(scene: Scene, standalone: bool = True) -> str:
    """The drawing as one element; `standalone`: as a file, on white."""
    title = f"<title>{escape(scene.title)}</title>" if scene.title else ""
    ground = '<rect width="100%" height="100%" fill="#fff"/>' if standalone else ""
    size = f'width="{_n(scene.width)}" height="{_n(scene.height)}" viewBox="0 0 {_n(scene.width)} {_n(scene.height)}"'
    names = ' xmlns="http://www.w3.org/2000/svg"' if standalone else ' class="plot"'
    body = "\n".join(map(_item, scene.items))
    head = f'<svg{names} {size} role="img" font-family="{FONT}">'
    return f"{head}{title}{ground}\n{body}\n</svg>\n"


def _item(item: Item) -> str:
    if isinstance(item, Line):
        dash = f' stroke-dasharray="{" ".join(map(_n, item.dash))}"' if item.dash else ""
        paint = f'{_paint("none", item.color)} stroke-width="{_n(item.width)}"{dash}'
        return f'<path d="{_path(item.points)}" {paint}/>'
    if isinstance(item, Area):
        return f'<path d="{_path(item.points)}Z" {_paint(item.color)} fill-opacity="{item.opacity:g}"/>'
    return _mark(item) if isinstance(item, Mark) else _label(item)


def _label(label: Label) -> str:
    anchor = "" if label.anchor == "start" else f' text-anchor="{label.anchor}"'
    bold = ' font-weight="600"' if label.bold else ""
    turn = f' transform="rotate(-90 {_n(label.x)} {_n(label.y)})"' if label.turned else ""
    place = f'x="{_n(label.x)}" y="{_n(label.y)}" font-size="{_n(label.size)}"'
    return f"<text {place} {_paint(label.color)}{anchor}{bold}{turn}>{escape(label.text, quote=False)}</text>"


def _mark(mark: Mark) -> str:
    if mark.shape in OPEN:
        paint = f'{_paint("none", mark.color)} stroke-width="1.8"'
    else:
        paint = f'{_paint(mark.color if mark.filled else "none", mark.color)} stroke-width="1.3"'
    return f"<{_trace(mark.shape, mark.x, mark.y, mark.size / 2)} {paint}/>"


def _trace(shape: str, x: float, y: float, half: float) -> str:
    """The element of a shape around a point, without its paint."""
    if shape == "circle":
        return f'circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(half)}"'
    if strokes := OPEN.get(shape):
        return f'path d="{"".join(_path(tuple((x + half * a, y + half * b) for a, b in one)) for one in strokes)}"'
    return f'path d="{_path(tuple((x + half * a, y + half * b) for a, b in OUTLINES[shape]))}Z"'


def render_mark(shape: str, filled: bool = True) -> str:
    """A mark as an element in the color of the text around it."""
    fill = "currentColor" if filled and shape not in OPEN else "none"
    paint = f'fill="{fill}" stroke="currentColor" stroke-width="{"2.2" if shape in OPEN else "1.4"}"'
    size = 'viewBox="-7 -7 14 14" width="14" height="14"'
    return f'<svg class="mark" {size} aria-hidden="true"><{_trace(shape, 0, 0, 4.4)} {paint}/></svg>'


_TIP = math.sqrt(3) / 2
OUTLINES: dict[str, Points] = {
    "square": ((-0.88, -0.88), (0.88, -0.88), (0.88, 0.88), (-0.88, 0.88)),
    "diamond": ((0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)),
    "up": ((0, -1.15), (1.1 * _TIP + 0.1, 0.85), (-1.1 * _TIP - 0.1, 0.85)),
    "down": ((0, 1.15), (1.1 * _TIP + 0.1, -0.85), (-1.1 * _TIP - 0.1, -0.85)),
    "bar": ((-0.45, -1.2), (0.45, -1.2), (0.45, 1.2), (-0.45, 1.2)),
}
OPEN: dict[str, tuple[Points, ...]] = {
    "cross": (((-0.9, -0.9), (0.9, 0.9)), ((-0.9, 0.9), (0.9, -0.9))),
    "plus": (((-1.1, 0), (1.1, 0)), ((0, -1.1), (0, 1.1))),
}


def _path(points: Points) -> str:
    return "M" + "L".join(starmap(lambda x, y: f"{_n(x)} {_n(y)}", points))


def _paint(fill: str, stroke: str | None = None) -> str:
    """Both colors as attributes, and as classes so that a page can redefine them."""
    names = [f"f-{fill}"] * (fill != "none") + [f"k-{stroke}"] * (stroke is not None)
    line = f' stroke="{COLORS[stroke]}"' if stroke is not None else ""
    return f'class="{" ".join(names)}" fill="{COLORS[fill]}"{line}'


def _n(value: float) -> str:
    """A number of pixels with at most one decimal."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text
