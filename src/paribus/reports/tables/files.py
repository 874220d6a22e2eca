"""All files of a table, as bytes: the same bytes for the same records."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.core.files import write_bytes
from paribus.core.jsonable import to_json
from paribus.reports.plots.figure import make_figure, render_pdf, render_png, render_svg
from paribus.reports.plots.panel import TableView, draw_all
from paribus.reports.tables.facts import write_line
from paribus.reports.tables.html import render_html
from paribus.reports.tables.latex import render_evidence, render_latex
from paribus.reports.tables.markdown import render_markdown
from paribus.reports.tables.schema import BOTH, Cell, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FIELDS = ("kind", "arm", "column", "n", "mean", "sd", "ci_low", "ci_high", "values")


def render_files(table: Table, style: str = BOTH, pdf: bool = False) -> dict[str, bytes]:
    """{file name: content} of `render_texts` and of each drawing as PNG.

    style: of the means in LaTeX. pdf: whether each drawing is also there as PDF, without its title.
    """
    if pdf:
        plain = {f"{name}.pdf": render_pdf(figure) for name, figure in draw_pictures(table, titled=False).items()}
        return render_files(table, style) | plain
    figures = draw_pictures(table)
    texts = {name: text.encode() for name, text in render_texts(table, style, figures).items()}
    return texts | {f"{name}.png": render_png(figure) for name, figure in figures.items()}


def render_committed(table: Table) -> dict[str, bytes]:
    """{file name: content} of what is committed beside the records; the other files are drawn from these again."""
    text = json.dumps(to_json(table), indent=2, sort_keys=True, allow_nan=False) + "\n"
    return {"table.md": render_markdown(table).encode(), "table.json": text.encode()}


def render_texts(table: Table, style: str = BOTH, figures: Mapping[str, Figure] | None = None) -> dict[str, str]:
    """{file name: content} of table.{md,tex,html,json,csv}, evidence.tex and of each drawing as SVG.

    figures: what `draw_pictures` gives, if it was called before.
    """
    figures = draw_pictures(table) if figures is None else figures
    return {
        **{name: content.decode() for name, content in render_committed(table).items()},
        "table.tex": render_latex(table, style),
        "evidence.tex": render_evidence(table),
        "table.html": render_html(table),
        "table.csv": _render_csv(table),
        **{f"{name}.svg": render_svg(figure) for name, figure in figures.items()},
    }


def draw_pictures(table: Table, titled: bool = True) -> dict[str, Figure]:
    """{name: all panels of a drawing as one}."""
    figures = {}
    for drawing, panels in draw_all(TableView(table)):
        heading = (f"{table.label}: {drawing.title}", write_line(table.facts)) if titled else ()
        figures[drawing.name] = make_figure(panels, *heading)
    return figures


def _render_csv(table: Table) -> str:
    """One line per cell of an arm or anchor, in the metric's own unit; published numbers have separate lines."""
    lines: list[dict[str, Any]] = []
    for kind, rows in (("arm", table.arms), ("anchor", table.anchors)):
        for row in rows:
            for column in (name for name in table.columns if name in row.metrics):
                cell = row.metrics[column]
                numbers = {key: value for key, value in to_json(cell).items() if key in _FIELDS and value is not None}
                values = cell.values if isinstance(cell, Cell) else ()
                numbers["values"] = " ".join(map(str, values))
                numbers["n"] = len(values) or ""
                lines.append({"kind": kind, "arm": row.name, "column": column, **numbers})
    metrics = table.paper.metrics if table.paper else ()
    for arm in table.arms:
        for metric in (name for name in metrics if name in arm.published):
            value = arm.published[metric].value
            lines.append({"kind": "published", "arm": arm.name, "column": metric, "mean": value})
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, _FIELDS, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(lines)
    return buffer.getvalue()


def write_files(folder: Path, content: Mapping[str, bytes]) -> None:
    """Write the files, each whole or not at all. Raises UserError if the disk is full or the folder is not writable."""
    for name, data in content.items():
        write_bytes(folder / name, data, durable=False)


def check(folder: Path, content: Mapping[str, bytes]) -> list[str]:
    """A line for each file of the folder that is missing or is not this content."""
    return [
        f"{path}: {'differs from its records' if path.is_file() else 'is missing'}"
        for path, new in ((folder / name, new) for name, new in sorted(content.items()))
        if not path.is_file() or path.read_bytes() != new
    ]
