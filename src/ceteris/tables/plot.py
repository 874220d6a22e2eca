"""Arms with their intervals, one panel a column. Colour-blind safe, and told apart by shape as well as by colour."""

from __future__ import annotations

import io
from typing import Any, NamedTuple

from ceteris.tables.build import Table
from ceteris.tables.words import label, number, paper_number

INK, OURS, PAPER, ANCHOR = "#222222", "#0072B2", "#D55E00", "#009E73"  # Okabe and Ito's palette
_SETTINGS: Any = {"svg.hashsalt": "ceteris", "svg.fonttype": "path", "font.family": "DejaVu Sans", "font.size": 9}


def draw(table: Table) -> dict[str, bytes]:
    """{"plot.png", "plot.svg"}: the same bytes for the same table and version of matplotlib."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns, files = table["columns"], {}
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        height = 1.6 + 0.42 * (len(table["arms"]))
        figure = Figure(figsize=(1.6 + 3.2 * len(columns), height), layout="constrained")
        FigureCanvasAgg(figure)
        if columns:  # else no task was asked for, and tasks are all that there is to plot
            _panels(figure, table)
        figure.suptitle(f"{table['study']} at {table['scale']} scale: mean and 95 % interval", fontsize=10)
        for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
            buffer = io.BytesIO()
            figure.savefig(buffer, format=kind, dpi=150, metadata=metadata)
            files[f"plot.{kind}"] = buffer.getvalue()
    return files


def _panels(figure: Any, table: Table) -> None:
    panels = figure.subplots(1, len(table["columns"]), sharey=True, squeeze=False)[0]
    for panel, column in zip(panels, table["columns"], strict=True):
        _panel(panel, table, column)
    panels[0].set_yticks(range(len(table["arms"])), [f"{arm['name']} (n={arm['n']})" for arm in table["arms"]])
    panels[0].invert_yaxis()


def _panel(panel: Any, table: Table, column: str) -> None:
    factor = 100.0 if table["about"][column]["unit"] == "points" else 1.0
    marks = _marks(table, column, factor)
    low, high = _window(table, column, factor)
    for at, arm in enumerate(table["arms"]):
        if found := arm["metrics"].get(column):
            _arm(panel, at, found, factor)
    for name, value, place in marks:
        if low <= value <= high:
            _mark(panel, name, value, place)
    panel.set_xlim(low, high)
    panel.set_title(label(table, column) + (" (points)" if factor == 100.0 else ""), fontsize=9)
    panel.set_ylim(-0.6, len(table["arms"]) - 0.4)
    panel.grid(axis="x", color="#dddddd", linewidth=0.6)
    panel.spines[["top", "right"]].set_visible(False)
    panel.tick_params(axis="x", labelsize=8)
    panel.set_xlabel(_legend(table, column, marks), fontsize=7)


class Mark(NamedTuple):
    """An anchor (a line through all arms, `at` None) or a published value (beside its arm)."""

    name: str
    value: float
    at: int | None


def _marks(table: Table, column: str, factor: float) -> list[Mark]:
    """The column's anchors, and the published values only where the paper's metric is the column's own."""
    anchors = [
        Mark(a["name"], a["metrics"][column]["mean"] * factor, None) for a in table["anchors"] if column in a["metrics"]
    ]
    metric = table["paper"].get("beside", {}).get(column)
    arms = [(at, arm) for at, arm in enumerate(table["arms"]) if metric is not None and metric in arm["published"]]
    return anchors + [Mark("paper", float(paper_number(arm, metric)), at) for at, arm in arms]


def _window(table: Table, column: str, factor: float) -> tuple[float, float]:
    """Room for the arms' intervals and seeds; what lies far outside is said in words, so that differences show."""
    cells = [arm["metrics"][column] for arm in table["arms"] if column in arm["metrics"]]
    ends = [end for cell in cells for end in (cell["ci_low"], cell["ci_high"], *cell["values"]) if end is not None]
    low, high = min(ends) * factor, max(ends) * factor
    room = max(0.35 * (high - low), 0.002 * max(abs(low), abs(high)), 1e-9)
    return low - room, high + room


def _legend(table: Table, column: str, marks: list[Mark]) -> str:
    """What the lines stand for, with their values, whether on the drawing or off it."""
    factor = 100.0 if table["about"][column]["unit"] == "points" else 1.0
    drawn = dict.fromkeys(f"{m.name} {number(table, column, m.value / factor)}" for m in marks if m.at is None)
    paper = [f"{m.value:g}" for m in marks if m.at is not None]
    parts = [*drawn, *([f"paper {', '.join(paper)}"] if paper else [])]
    return "\n".join("; ".join(parts[at : at + 2]) for at in range(0, len(parts), 2))


def _mark(panel: Any, name: str, value: float, at: int | None) -> None:
    if at is None:
        panel.axvline(value, color=ANCHOR, linestyle="--", linewidth=1.2)
        panel.text(value, -0.55, f" {name}", color=ANCHOR, fontsize=7, va="top")
    else:
        panel.plot([value], [at - 0.18], "D", markersize=5, color=PAPER, markerfacecolor="none")


def _arm(panel: Any, at: int, found: Any, factor: float) -> None:
    """Small open circles: single seeds; the bar: the interval of their mean."""
    values = [value * factor for value in found["values"]]
    panel.plot(values, [at + 0.18] * len(values), "o", markersize=3, markerfacecolor="none", color=INK, alpha=0.6)
    mean = found["mean"] * factor
    if found["ci_low"] is None:
        panel.plot([mean], [at], "s", markersize=5, color=OURS)
        return
    reach = [[mean - found["ci_low"] * factor], [found["ci_high"] * factor - mean]]
    panel.errorbar([mean], [at], xerr=reach, fmt="s", markersize=5, color=OURS, capsize=3, linewidth=1.6)
