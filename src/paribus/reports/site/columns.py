"""The page of what each column sees, in Markdown, and its numbers as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

from paribus.core.jsonable import to_json
from paribus.reports.column_signal import ColumnSignal, ColumnSummary, measure_columns, summarize_columns
from paribus.reports.effects import rank_scale
from paribus.reports.site.collect import Entry
from paribus.reports.tables.blocks import format_value
from paribus.reports.tables.html import render
from paribus.reports.tables.markdown import render_grid
from paribus.reports.tables.schema import PRETRAININGS, TUNINGS
from paribus.verdict.metrics import in_points

NOTHING = "-"
HEADER = (
    "column", "studies", "baseline", "from scratch", "bag of words", "signal", "pre-training seed",
    "fine-tuning seed", "evaluation set", "signal / noise", "above the bag of words", "at chance",
)  # fmt: skip


def measure_all(entries: Sequence[Entry]) -> list[ColumnSignal]:
    """Every column of every table whose sweep file is known, and whose runs differ in their seeds alone."""
    return [
        signal
        for entry in entries
        if entry.design is not None and entry.table.replication in (PRETRAININGS, TUNINGS)
        for signal in measure_columns(entry.design, entry.records, entry.table.replication)
    ]


def render_columns(signals: Sequence[ColumnSignal]) -> bytes:
    """The page at columns.md: a table for each scale, the largest first."""
    parts = []
    for scale in sorted({signal.scale for signal in signals}, key=rank_scale, reverse=True):
        here = [signal for signal in signals if signal.scale == scale]
        rows = [_write_row(row) for row in summarize_columns(here)]
        studies, stuck = (len({one.study for one in here if bool(one.stuck) == on}) for on in (False, True))
        grid = render_grid(HEADER, rows) if rows else ""
        parts.append({"scale": scale, "studies": studies, "stuck": stuck, "grid": grid})
    return render("columns.md", scales=parts).encode()


def write_columns(signals: Sequence[ColumnSignal]) -> bytes:
    """The file at columns.json: each column of each study."""
    return (json.dumps(to_json(list(signals)), indent=1) + "\n").encode()


def _write_row(row: ColumnSummary) -> list[str]:
    factor = 100.0 if in_points(row.column) else 1.0

    def write(value: float | None, extra: int = 0, sign: bool = False) -> str:
        return NOTHING if value is None else format_value(row.column, value * factor, extra, sign)

    ratio = NOTHING if row.ratio is None else f"{row.ratio:.1f} ({row.ratio_low:.1f} to {row.ratio_high:.1f})"
    return [
        row.column,
        str(row.studies),
        write(row.baseline),
        write(row.scratch),
        write(row.bag_of_words),
        write(row.signal, sign=True),
        write(row.sd_pretraining, 1),
        write(row.sd_finetuning, 1),
        write(row.se_evaluation, 1),
        ratio,
        f"{row.above_words} of {row.with_words}" if row.with_words else NOTHING,
        f"{row.at_chance} of {row.scores}" if row.scores else NOTHING,
    ]
