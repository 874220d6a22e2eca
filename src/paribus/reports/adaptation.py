"""The answer of `paribus adapt` in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paribus.reports.tables.assemble import make_table
from paribus.reports.tables.schema import Table
from paribus.runs.store import find_records
from paribus.sweeps.adapt import ADAPTED, AS_IT_IS
from paribus.sweeps.sweep import SCRATCH, Sweep
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
    names = {AS_IT_IS: "as it is", ADAPTED: "further pre-trained", SCRATCH: "from scratch"}
    levels = [f"{_number(mean, score, '')} {names[arm]}" for arm, mean in _levels(table, score).items()]
    lost = _difference(table, "stage_forgetting")
    cost = f"changes the held-out loss on general text by {lost}" if lost else _UNKNOWN
    hours = _hours(sweep, scale, roots)
    seeds = max(arm.n for arm in table.arms)
    return (
        f"Further pre-training changes {score} by {gain} ({', '.join(levels)}), {cost}, and takes {hours:.2g} hours: "
        f"means and 95% intervals over {seeds} seeds."
    )


_UNKNOWN = "has an unknown cost on general text, since the checkpoint has no trained head on tokens"


def _difference(table: Table, column: str) -> str | None:
    """The mean of the adapted arm less the checkpoint as it is, with its interval if there are several seeds."""
    found = next(arm for arm in table.arms if arm.name == ADAPTED).versus_baseline.get(column)
    if found is None:
        return None
    unit = " points" if in_points(column) else " nats" if column == "stage_forgetting" else ""
    if found.ci_low is None or found.ci_high is None:
        return f"{_number(found.difference, column)}{unit}"
    interval = f"[{_number(found.ci_low, column)}, {_number(found.ci_high, column)}]"
    return f"{_number(found.difference, column)}{unit} {interval}"


def _number(value: float, column: str, sign: str = "+") -> str:
    return f"{value * 100:{sign}.1f}" if in_points(column) else f"{value:{sign}.3f}"


def _levels(table: Table, column: str) -> dict[str, float]:
    """{arm: its mean}, from scratch included."""
    found = {arm.name: arm.metrics[column].mean for arm in table.arms if column in arm.metrics}
    scratch = next((row.metrics[column] for row in table.anchors if row.name == "from scratch"), None)
    return found if scratch is None else {**found, SCRATCH: scratch.mean}


def _hours(sweep: Sweep, scale: str, roots: Sequence[Path]) -> float:
    """The mean over seeds of the hours that the last stage of the adapted arm took."""
    runs = [run for run in find_records(sweep.study, scale, roots).records if run.done and run.arm == ADAPTED]
    seconds = [run.further["stages"][-1]["budget"]["train_seconds"] for run in runs]
    return sum(seconds) / len(seconds) / HOUR if seconds else 0.0
