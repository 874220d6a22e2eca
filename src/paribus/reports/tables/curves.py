"""Learning curves of a study: what runs logged during training, interpolated to one grid of tokens and averaged."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

from paribus.reports.tables.schema import Band
from paribus.runs.folder import CURVES, STAGES, TUNING, StoredRun
from paribus.runs.record import Record, TaskPoint
from paribus.runs.store import find_stored
from paribus.verdict.metrics import MEAN, in_points
from paribus.verdict.statistics import summarize

POINTS = 40  # of a curve, at most
DIGITS = 6  # of a value that is drawn
TOKENS = "train/tokens"
_NEAR, _TOGETHER = 0.01, 0.05  # of a run: points as near as this are the same; runs that end so near, end together
ON_THE_WAY = " after pre-training"  # after a task's column: against the tokens of the pre-training
HELD_OUT = "validation/"  # before a held-out column
DIFFERENCE = ": difference from "  # between a metric and the baseline
_SHOWN = ("_loss", "_accuracy")


class Curve(NamedTuple):
    """A metric of one run: values at tokens, both in the order of the steps."""

    tokens: list[float]
    values: list[float]


Runs = Mapping[str, Mapping[str, Mapping[int, Curve]]]  # {metric: {arm: {seed: curve}}}


def read_curves(run: StoredRun, record: Record, averaged: Sequence[str] = ()) -> dict[str, Curve]:
    """{metric: curve} of a run: losses and accuracies of pre-training, what its fine-tunings wrote, then the scores of
    tasks during pre-training and their mean.

    A line that cannot be read is left out. `averaged`: the columns that the mean over tasks averages.
    """
    curves: dict[str, Curve] = {}
    for file, before in _list_stages(record):
        lines = run.read_curve_lines(record, file)
        tokens_at = {line["step"]: float(line[TOKENS]) for line in lines if TOKENS in line}
        for metric in dict.fromkeys(name for line in lines for name in line if name.endswith(_SHOWN)):
            curve = curves.setdefault(metric, Curve([], []))
            for line in lines:
                step, value = line.get("step", 0), line.get(metric)
                if isinstance(value, float) and math.isfinite(value):
                    curve.tokens.append(before + (tokens_at.get(step) or _interpolate_tokens(step, tokens_at)))
                    curve.values.append(value)
    curves |= _read_tuning(run, record)
    return {name: curve for name, curve in curves.items() if curve.tokens} | read_points(record, averaged)


def _list_stages(record: Record) -> list[tuple[str, float]]:
    """(the file of its curves, tokens read before it) of each stage of a pre-training."""
    stages = record.further.get("stages", [])
    files = [*(f"{STAGES}/{stage['stage']}/{CURVES}" for stage in stages[:-1]), CURVES]
    before = accumulate((stage["budget"]["input_tokens"] for stage in stages[:-1]), initial=0.0)
    return list(zip(files, before, strict=True))


def _read_tuning(run: StoredRun, record: Record) -> dict[str, Curve]:
    """{"task/metric": the mean curve over fine-tuning seeds}; of a point that was written twice the last counts."""
    lines = run.read_curve_lines(record, TUNING)
    kept = {(line.get("task"), line.get("seed"), line.get("step", 0)): line for line in lines}
    points: dict[str, dict[int, list[tuple[float, float]]]] = {}  # {metric: {step: (tokens, value) of each seed}}
    for (task, _, step), line in kept.items():
        for name, value in line.get("values", {}).items():
            if math.isfinite(value):
                points.setdefault(f"{task}/{name}", {}).setdefault(step, []).append((float(line["tokens"]), value))
    curves = {}
    for metric, steps in points.items():
        means = [[math.fsum(part) / len(part) for part in zip(*at, strict=True)] for _, at in sorted(steps.items())]
        curves[metric] = Curve([tokens for tokens, _ in means], [value for _, value in means])
    return curves


def read_points(record: Record, averaged: Sequence[str] = ()) -> dict[str, Curve]:
    """{"task/metric after pre-training": its scores against the tokens of the pre-training, the end included}, and
    "mean after pre-training" if every averaged column has one.
    """
    curves: dict[str, Curve] = {}
    _, before = _list_stages(record)[-1]
    end = int(record.budget.get("input_tokens", 0) - before)
    ends = [TaskPoint(0, end, record.task_runs)] if record.task_points else []
    for point in (*record.task_points, *ends):
        values: dict[str, list[float]] = {}
        for run in point.task_runs:
            for name, value in run.metrics.items():
                if value is not None and math.isfinite(value):
                    values.setdefault(f"{run.task}/{name}{ON_THE_WAY}", []).append(value)
        for name, scores in values.items():
            curve = curves.setdefault(name, Curve([], []))
            curve.tokens.append(before + point.tokens)
            curve.values.append(math.fsum(scores) / len(scores))
    parts = [curves.get(f"{column}{ON_THE_WAY}", Curve([], [])) for column in averaged]
    if parts and all(part.tokens and part.tokens == parts[0].tokens for part in parts):
        rows = zip(*(part.values for part in parts), strict=True)
        curves[f"{MEAN}{ON_THE_WAY}"] = Curve(parts[0].tokens, [math.fsum(row) / len(row) for row in rows])
    return curves


def _interpolate_tokens(step: int, tokens_at: Mapping[int, float]) -> float:
    """Tokens read until a step, interpolated between the steps at which they were counted."""
    if step in tokens_at:
        return tokens_at[step]
    known = [0, *sorted(tokens_at)]
    at = min(bisect_left(known, step), len(known) - 1)
    if at == 0:
        return 0.0
    before, after = known[at - 1], known[at]
    low, high = tokens_at.get(before, 0.0), tokens_at[after]
    return low + (high - low) * (step - before) / (after - before)


def thin(curve: Curve, points: int = POINTS) -> Curve:
    """At most this many points: means over equal stretches of the lines."""
    count = len(curve.values)
    if count <= points:
        return curve
    edges = [round(at * count / points) for at in range(points + 1)]
    spans = [slice(low, high) for low, high in pairwise(edges)]
    return Curve(*([math.fsum(part[span]) / len(part[span]) for span in spans] for part in curve))


def average_curves(runs: Runs, arms: Sequence[str]) -> dict[str, dict[str, Band]]:
    """{metric: {arm: the mean curve over seeds}}."""
    return {
        metric: {arm: average([thin(curve) for curve in curves[arm].values()]) for arm in arms if arm in curves}
        for metric, curves in sorted(runs.items())
    }


def average_effects(runs: Runs, arms: Sequence[str], baseline: str) -> dict[str, dict[str, Band]]:
    """{"metric: difference from BASELINE": {arm: the mean difference, paired by seed}} against tokens, of the held-out
    losses and of the tasks that were fine-tuned on the way; an arm that shares the baseline's pre-trainings has
    no difference in their losses.
    """
    effects: dict[str, dict[str, Band]] = {}
    for metric, curves in sorted(runs.items()):
        if not metric.endswith(ON_THE_WAY) and not (metric.startswith(HELD_OUT) and metric.endswith("_loss")):
            continue
        for arm in arms:
            base = curves.get(baseline, {})
            pairs = [subtract(curve, base[seed]) for seed, curve in curves.get(arm, {}).items() if seed in base]
            shared = [one for one in pairs if one.tokens]
            same = metric.endswith("_loss") and not any(any(one.values) for one in shared)  # one pre-training for both
            if arm != baseline and shared and not same:
                name = f"{metric.removesuffix(ON_THE_WAY)}{DIFFERENCE}{baseline}"
                effects.setdefault(name, {})[arm] = average(shared)
    return effects


def collect_curves(
    records: Sequence[Record], arms: Sequence[str], roots: Sequence[Path], averaged: Sequence[str] = ()
) -> Runs:
    """The curves of finished runs; `averaged`: the columns that the mean over tasks averages."""
    runs: dict[str, dict[str, dict[int, Curve]]] = {}
    for record in records:
        run = find_stored(record, roots) if record.done and record.arm in arms else None
        for metric, curve in (read_curves(run, record, averaged) if run else {}).items():
            runs.setdefault(metric, {}).setdefault(record.arm, {})[record.seed] = curve
    return runs


def average(curves: Sequence[Curve]) -> Band:
    """Mean and 95% interval over runs, point by point if they were measured at the same steps.

    Runs read a few tokens more or fewer by the same step. Otherwise at the points of the first run, as far as all of
    them reach.
    """
    if _is_in_step(curves):
        places = [round(math.fsum(row) / len(row)) for row in zip(*(curve.tokens for curve in curves), strict=True)]
        return make_band(places, [curve.values for curve in curves])
    grid = _reached(curves[0], curves)
    return make_band(
        [round(tokens) for tokens in grid], [[interpolate(curve, tokens) for tokens in grid] for curve in curves]
    )


def subtract(first: Curve, second: Curve) -> Curve:
    """The difference of two runs, point by point if they are in step, else at the first's points that both reach."""
    if _is_in_step([first, second]):
        return Curve(first.tokens, [a - b for a, b in zip(first.values, second.values, strict=True)])
    grid = _reached(first, [second])
    return Curve(grid, [value - interpolate(second, tokens) for tokens, value in zip(grid, first.values, strict=False)])


def _reached(first: Curve, others: Sequence[Curve]) -> list[float]:
    """The first points of a curve, as far as the others reach; ends that are near each other are one."""
    end = min(curve.tokens[-1] for curve in others)
    return [tokens for tokens in first.tokens if tokens <= end * (1 + _TOGETHER)]


def _is_in_step(curves: Sequence[Curve]) -> bool:
    """Whether the runs have as many points, at the same tokens within 1% of a run."""
    first, *others = (curve.tokens for curve in curves)
    near = _NEAR * first[-1]
    return all(
        len(other) == len(first) and all(abs(a - b) <= near for a, b in zip(first, other, strict=True))
        for other in others
    )


def find_column(metric: str) -> str:
    """The column of a curve: `mlm_loss` of `validation/mlm_loss`."""
    return metric.partition(DIFFERENCE)[0].removesuffix(ON_THE_WAY).removeprefix(HELD_OUT)


def find_factor(metric: str) -> float:
    """What the values of a curve are multiplied by to be drawn: 100 if its column is in points."""
    return 100.0 if in_points(find_column(metric)) else 1.0


def scale_band(band: Band, factor: float) -> Band:
    """The curve with every value multiplied."""

    def scale(values: Sequence[float | None]) -> tuple[float | None, ...]:
        return tuple(None if value is None else value * factor for value in values)

    return replace(
        band,
        mean=scale(band.mean),
        ci_low=scale(band.ci_low),
        ci_high=scale(band.ci_high),
        runs=tuple(map(scale, band.runs)),
    )


def make_band(places: Sequence[float], runs: Sequence[Sequence[float]]) -> Band:
    """Means over runs, place by place, with 95% intervals; of two runs each by itself instead."""
    summaries = [summarize(values) for values in zip(*runs, strict=True)]
    pair = len(runs) == 2
    return Band(
        tuple(places),
        tuple(_shorten(summary.mean) for summary in summaries),
        tuple(None if pair else _shorten(summary.ci_low) for summary in summaries),
        tuple(None if pair else _shorten(summary.ci_high) for summary in summaries),
        len(runs),
        tuple(tuple(_shorten(value) for value in values) for values in runs) if pair else (),
    )


def _shorten(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")


def interpolate(curve: Curve, tokens: float) -> float:
    """A curve's value at a number of tokens, on straight lines between its points."""
    right = min(bisect_left(curve.tokens, tokens), len(curve.tokens) - 1)
    if right == 0 or curve.tokens[right] == curve.tokens[right - 1]:
        return curve.values[right]
    left = right - 1
    share = min(1.0, (tokens - curve.tokens[left]) / (curve.tokens[right] - curve.tokens[left]))
    return curve.values[left] + share * (curve.values[right] - curve.values[left])
