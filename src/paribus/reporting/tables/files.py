"""All files of a table, as bytes: the same bytes for the same records."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from paribus.core.errors import UserError
from paribus.reporting.plots.png import png
from paribus.reporting.plots.scene import Scene, beside, headed
from paribus.reporting.plots.svg import svg
from paribus.reporting.tables.build import Table
from paribus.reporting.tables.latex import latex
from paribus.reporting.tables.markdown import markdown
from paribus.reporting.tables.page import DRAWINGS, TITLES, page

_FIELDS = ("kind", "arm", "column", "n", "mean", "sd", "ci_low", "ci_high", "values")


def render(table: Table) -> dict[str, bytes]:
    """{file name: content} of `texts` and of each drawing as PNG."""
    pictures = {f"{name}.png": png(scene) for name, scene in drawings(table).items()}
    return {**{name: text.encode() for name, text in texts(table).items()}, **pictures}


def texts(table: Table) -> dict[str, str]:
    """{file name: content} of table.{md,tex,html,json,csv} and of each drawing as SVG."""
    return {
        "table.md": markdown(table),
        "table.tex": latex(table),
        "table.html": page(table),
        "table.json": json.dumps(table, indent=2, sort_keys=True, allow_nan=False) + "\n",
        "table.csv": sheet(table),
        **{f"{name}.svg": svg(scene) for name, scene in drawings(table).items()},
    }


def drawings(table: Table) -> dict[str, Scene]:
    """{name: all panels of a drawing as one}, of those that there is something to draw for."""
    drawn = {name: panels(table) for name, panels in DRAWINGS.items()}
    return {name: _whole(table, name, scenes) for name, scenes in drawn.items() if scenes}


def _whole(table: Table, name: str, scenes: Sequence[Scene]) -> Scene:
    return headed(beside(scenes), f"{table['study']} at {table['scale']} scale: {TITLES[name]}")


def sheet(table: Table) -> str:
    """One line for each arm or anchor and column, in the metric's own unit; published numbers as lines of their own."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, _FIELDS, lineterminator="\n", restval="")
    writer.writeheader()
    for kind, rows in (("arm", table["arms"]), ("anchor", table["anchors"])):
        for row in rows:
            for column in (name for name in table["columns"] if name in row["metrics"]):
                cell = row["metrics"][column]
                values = cell.get("values", [])
                numbers = {key: cell[key] for key in ("mean", "sd", "ci_low", "ci_high") if cell.get(key) is not None}
                found = {"n": len(values) or "", "values": " ".join(map(str, values)), **numbers}
                writer.writerow({"kind": kind, "arm": row["name"], "column": column, **found})
    for arm in table["arms"]:
        for metric in (name for name in table["paper"].get("metrics", ()) if name in arm["published"]):
            value = arm["published"][metric]["value"]
            writer.writerow({"kind": "published", "arm": arm["name"], "column": metric, "mean": value})
    return buffer.getvalue()


def write(folder: Path, content: Mapping[str, bytes]) -> None:
    """Write the files, each whole or not at all. Raises UserError where the folder is not writable."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in content.items():
            part = folder / f".{name}.part"
            part.write_bytes(data)
            os.replace(part, folder / name)
    except OSError as error:
        raise UserError(f"{folder} cannot be written ({error.strerror})", "choose another out=") from error


def check(folder: Path, content: Mapping[str, bytes]) -> list[str]:
    """A line for each file of the folder that is missing or is not this content."""
    return [
        f"{path}: {'differs from its records' if path.is_file() else 'is missing'}"
        for path, new in ((folder / name, new) for name, new in sorted(content.items()))
        if not path.is_file() or path.read_bytes() != new
    ]
