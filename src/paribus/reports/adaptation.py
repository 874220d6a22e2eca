"""The answer of `paribus adapt` in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paribus.reports.tables.assemble import make_table
from paribus.reports.tables.schema import Table
from paribus.runs.store import find_records
from paribus.sweeps.adapt import ADAPTED, AS_IT_IS
from paribus.sweeps.sweep import Sweep
from paribus.verdict.metrics import in_points

HOUR = 3600.0  # seconds


def answer(sweep: Sweep, scale: str, roots: Sequence[Path]) -> str:
    """What further pre-training gains on the task, costs on general text and takes, each with a 95% interval.

    Raises UserError if no run is finished.
    """
    table, score = make_table(sweep, scale, None, roots), sweep.columns[0]
    gain = _difference(table, score)
    if gain is None:
        return "Further pre-training cannot be judged: no seed has finished both with it and without it."
    names = {AS_IT_IS: "as it is", ADAPTED: "further pre-trained"}
    levels = [
        f"{_number(arm.metrics[score].mean, score, '')} {names[arm.name]}" for arm in table.arms if score in arm.metrics
    ]
    scratch = next((row.metrics[score] for row in table.anchors if row.name == "from scratch"), None)
    levels += [f"{_number(scratch.mean, score, '')} from scratch"] if scratch else []
    lost = _difference(table, "stage_forgetting")
    unknown = "has an unknown cost on general text, since the checkpoint has no trained head on tokens"
    cost = f"changes the held-out loss on general text by {lost}" if lost else unknown
    runs = [run for run in find_records(sweep.study, scale, roots).records if run.done and run.arm == ADAPTED]
    seconds = [run.further["stages"][-1]["budget"]["train_seconds"] for run in runs]  # of the last stage
    hours = sum(seconds) / len(seconds) / HOUR if seconds else 0.0
    seeds = max(arm.n for arm in table.arms)
    return (
        f"Further pre-training changes {score} by {gain} ({', '.join(levels)}), {cost}, and takes {hours:.2g} hours: "
        f"means and 95% intervals over {seeds} seeds."
    )


def _difference(table: Table, column: str) -> str | None:
    """The mean of the adapted arm less the checkpoint as it is, with its interval if there are several seeds."""
    paired = next(arm for arm in table.arms if arm.name == ADAPTED).versus_baseline.get(column)
    if paired is None:
        return None
    unit = " points" if in_points(column) else " nats" if column == "stage_forgetting" else ""
    if paired.ci_low is None or paired.ci_high is None:
        return f"{_number(paired.difference, column)}{unit}"
    interval = f"[{_number(paired.ci_low, column)}, {_number(paired.ci_high, column)}]"
    return f"{_number(paired.difference, column)}{unit} {interval}"


def _number(value: float, column: str, sign: str = "+") -> str:
    return f"{value * 100:{sign}.1f}" if in_points(column) else f"{value:{sign}.3f}"
