"""Learning curves of a study: what runs wrote while they trained, brought to one grid of tokens and averaged."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from paribus.reporting.tables.evidence import Record
from paribus.runs.store import CURVES, TUNING, folder_of, lines
from paribus.verdict.statistics import summarize

POINTS = 40  # of a curve, at most
DIGITS = 6  # of a value that is drawn
TOKENS = "train/tokens"
_SHOWN = ("_loss", "_accuracy")


class Curve(NamedTuple):
    """A metric of one run: values at tokens, both in the order of the steps."""

    tokens: list[float]
    values: list[float]


def read(folder: Path) -> dict[str, Curve]:
    """{metric: curve} of a run: losses and accuracies of pre-training, then what its fine-tunings wrote.

    A line that cannot be read is left out.
    """
    found_lines = lines(folder / CURVES)
    steps = {line["step"]: float(line[TOKENS]) for line in found_lines if TOKENS in line}
    shown = [name for name in dict.fromkeys(name for line in found_lines for name in line) if name.endswith(_SHOWN)]
    found = {name: _curve(name, found_lines, steps) for name in shown} | _tuning(folder)
    return {name: curve for name, curve in found.items() if len(curve.tokens) > 1}


def _tuning(folder: Path) -> dict[str, Curve]:
    """{"task/metric": the mean curve over fine-tuning seeds}; of a point that was written twice the last counts."""
    kept = {(line.get("task"), line.get("seed"), line.get("step", 0)): line for line in lines(folder / TUNING)}
    found: dict[str, dict[int, list[tuple[float, float]]]] = {}
    for (task, _, step), line in kept.items():
        for name, value in line.get("values", {}).items():
            if math.isfinite(value):
                found.setdefault(f"{task}/{name}", {}).setdefault(step, []).append((float(line["tokens"]), value))
    return {name: _mean([points for _, points in sorted(steps.items())]) for name, steps in found.items()}


def _mean(points: Sequence[Sequence[tuple[float, float]]]) -> Curve:
    """The curve of the mean of several ones, given step by step."""
    means = [[math.fsum(part) / len(part) for part in zip(*step, strict=True)] for step in points]
    return Curve([tokens for tokens, _ in means], [value for _, value in means])


def _curve(name: str, lines: Sequence[dict[str, Any]], steps: Mapping[int, float]) -> Curve:
    points = [(line.get("step", 0), line[name]) for line in lines if name in line]
    kept = [(step, value) for step, value in points if isinstance(value, float) and math.isfinite(value)]
    return Curve([steps.get(step) or _tokens(step, steps) for step, _ in kept], [value for _, value in kept])


def _tokens(step: int, steps: Mapping[int, float]) -> float:
    """Tokens read until a step, between the steps where they were counted in a straight line."""
    if step in steps:
        return steps[step]
    known = [0, *sorted(steps)]
    at = min(bisect_left(known, step), len(known) - 1)
    if at == 0:
        return 0.0
    before, after = known[at - 1], known[at]
    low, high = steps.get(before, 0.0), steps[after]
    return low + (high - low) * (step - before) / (after - before)


def thinned(curve: Curve, points: int = POINTS) -> Curve:
    """At most so many points: means over equal stretches of the lines."""
    count = len(curve.values)
    if count <= points:
        return curve
    edges = [round(at * count / points) for at in range(points + 1)]
    spans = [slice(low, high) for low, high in pairwise(edges)]
    return Curve(*([math.fsum(part[span]) / len(part[span]) for span in spans] for part in curve))


def summary(records: Sequence[Record], arms: Sequence[str], roots: Sequence[Path]) -> dict[str, Any]:
    """{metric: {arm: {"tokens", "mean", "ci_low", "ci_high", "n"}}} over the seeds of finished runs."""
    found: dict[str, dict[str, list[Curve]]] = {}
    for record in records:
        folder = folder_of(record, roots) if record["status"] == "done" and record["arm"] in arms else None
        for metric, curve in (read(folder) if folder else {}).items():
            found.setdefault(metric, {}).setdefault(record["arm"], []).append(thinned(curve))
    return {
        metric: {arm: averaged(found[metric][arm]) for arm in arms if arm in found[metric]} for metric in sorted(found)
    }


def averaged(curves: Sequence[Curve]) -> dict[str, Any]:
    """Mean and 95 % interval over runs at the places of the first one, as far as all of them go."""
    ends = min(curve.tokens[-1] for curve in curves)
    grid = [tokens for tokens in curves[0].tokens if tokens <= ends * (1 + 1e-9)]
    return banded([round(tokens) for tokens in grid], [[at(curve, tokens) for tokens in grid] for curve in curves])


def banded(places: Sequence[float], runs: Sequence[Sequence[float]]) -> dict[str, Any]:
    """{"tokens": places, "mean", "ci_low", "ci_high", "n"}: means and 95 % intervals over runs, place by place."""
    summaries = [summarize(values) for values in zip(*runs, strict=True)]
    return {
        "tokens": list(places),
        **{name: [_drawn(getattr(found, name)) for found in summaries] for name in ("mean", "ci_low", "ci_high")},
        "n": len(runs),
    }


def _drawn(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")


def at(curve: Curve, tokens: float) -> float:
    """A curve's value at a number of tokens, in a straight line between its points."""
    right = min(bisect_left(curve.tokens, tokens), len(curve.tokens) - 1)
    if right == 0 or curve.tokens[right] == curve.tokens[right - 1]:
        return curve.values[right]
    left = right - 1
    share = min(1.0, (tokens - curve.tokens[left]) / (curve.tokens[right] - curve.tokens[left]))
    return curve.values[left] + share * (curve.values[right] - curve.values[left])
