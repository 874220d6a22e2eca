"""CSV files that W&B exports from a chart: a column of steps, and one column per run or group of runs.

"Step","static-s0 - val_acc","static-s0 - val_acc__MIN","static-s0 - val_acc__MAX","dynamic-s0 - val_acc",...
"""

from __future__ import annotations

from collections.abc import Sequence

from paribus.integrations.source import BLANKS, ForeignRow
from paribus.integrations.steps import STEPS

_BETWEEN = " - "  # a run and its metric
_LOW, _HIGH = "__MIN", "__MAX"


def is_chart(header: Sequence[str]) -> bool:
    """Whether every column but the first is that of a run's metric, each with its two columns of extremes.

    These may have been removed if the first column is named like a step.
    """
    runs = [column for column in header[1:] if not column.endswith((_LOW, _HIGH))]
    ends = {column + end for column in runs for end in (_LOW, _HIGH)}
    whole = {*header[1:]} == {*runs, *ends} or (len(runs) == len(header) - 1 and header[0] in STEPS)
    return bool(runs) and whole and all(_BETWEEN in column for column in runs)


def read_chart(header: Sequence[str], rows: Sequence[ForeignRow]) -> tuple[list[ForeignRow], tuple[str, ...]]:
    """One row per run and step, and notes. A run's name is also its column `name`."""
    runs = [column for column in header[1:] if not column.endswith((_LOW, _HIGH))]
    points = []
    for row in rows:
        for column in runs:
            if str(row.values[column]).strip(BLANKS):
                name, _, metric = column.rpartition(_BETWEEN)
                values = {header[0]: row.values[header[0]], "name": name, metric: row.values[column]}
                points.append(ForeignRow(f"{row.place} ({name})", values, name, aliases=(name,)))
    averaged = [c for c in runs if any(row.values.get(c + _LOW) != row.values.get(c + _HIGH) for row in rows)]
    if not averaged:
        return points, ()
    more = f" and {len(averaged) - 1} more" if len(averaged) > 1 else ""
    what = f"{averaged[0]}{more}: its lowest and highest values differ, so that each value is a mean"
    return points, (f"{what} over several runs or steps; it counts as one run.",)
