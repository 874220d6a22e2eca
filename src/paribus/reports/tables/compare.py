"""Comparisons in a table: the paper's effects and orders, other kinds of intervals, means over tasks."""

from __future__ import annotations

from typing import NamedTuple

from paribus.reports.tables.design import Design
from paribus.reports.tables.evidence import Evidence
from paribus.reports.tables.schema import Aggregate, Equivalence, Estimate, OrderRow, OverallRow, Spread
from paribus.verdict.contrast import Contrast
from paribus.verdict.metrics import MEAN, POINT, in_points, is_task
from paribus.verdict.published import PublishedTable
from paribus.verdict.resampling import ENOUGH, bca, compare_order
from paribus.verdict.statistics import (
    find_components,
    rounded,
    subtract_nested,
    summarize,
    tost,
)  # fmt: skip

_PERCENT = 1.5  # a published accuracy above this is printed in percent


class ContrastContext(NamedTuple):
    """Of a contrast: the published effect in our unit, intervals of other kinds, the components of its spread."""

    published: float | None
    equivalence: Equivalence | None
    ci_bootstrap: tuple[float, float] | None
    components: Spread | None


def find_context(
    design: Design, evidence: Evidence, paper: PublishedTable | None, contrast: Contrast
) -> ContrastContext:
    """What is printed beside a contrast."""
    values = contrast.difference.differences
    test = tost(contrast.difference, contrast.margin) if contrast.margin > 0.0 else None
    interval = bca(values) if len(values) >= ENOUGH else None
    return ContrastContext(
        _find_published_effect(design, paper, contrast),
        None if test is None else Equivalence(*test),
        None if interval is None else (interval.low, interval.high),
        _split_spread(evidence, contrast),
    )


def _find_published_effect(design: Design, paper: PublishedTable | None, contrast: Contrast) -> float | None:
    """The paper's own difference between the two rows, in the unit of our column; None if it prints none."""
    metric = design.published.get("metrics", {}).get(contrast.column)
    rows = design.published.get("rows", {})
    if paper is None or metric is None or not {contrast.pair.arm, contrast.pair.versus} <= rows.keys():
        return None
    first, second = (paper.row(rows[arm]).values.get(metric) for arm in (contrast.pair.arm, contrast.pair.versus))
    if first is None or second is None:
        return None
    percent = in_points(contrast.column) and max(abs(first), abs(second)) > _PERCENT
    return rounded((first - second) * (POINT if percent else 1.0))


def _split_spread(evidence: Evidence, contrast: Contrast) -> Spread | None:
    """Where the spread of a task's differences comes from: pre-training or fine-tuning."""
    if not is_task(contrast.column):
        return None
    first, second = (evidence.nested(arm, contrast.column) for arm in (contrast.pair.arm, contrast.pair.versus))
    components = find_components(subtract_nested(first, second))
    return None if components is None else Spread(*map(rounded, (*components, components.narrower)))


def compare_orders(design: Design, evidence: Evidence, paper: PublishedTable) -> list[OrderRow]:
    """Kendall's tau between both orders of the arms, for each column that the sweep maps to a metric of the paper."""
    rows = []
    for column, metric in design.published.get("metrics", {}).items():
        printed = {arm: paper.row(row).values.get(metric) for arm, row in design.published.get("rows", {}).items()}
        numbers = {arm: float(value) for arm, value in printed.items() if value is not None}
        ours = {arm: evidence.values(arm, column) for arm in design.arms}
        if (order := compare_order(ours, numbers)) is not None:
            rows.append(OrderRow(column, metric, order.arms, order.n, order.tau, *(order.interval or (None, None))))
    return rows


def summarize_tasks(design: Design, evidence: Evidence) -> Aggregate | None:
    """Each arm's mean over all tasks, and its paired difference from the baseline's, with t intervals.

    Over the seeds that have all of them; None if fewer than two tasks have scores in points.
    """
    columns = evidence.find_averaged()
    if len({column.rpartition("/")[0] for column in columns}) < 2:
        return None
    rows = []
    for arm in design.arms:
        if values := evidence.values(arm, MEAN):
            _, mean, _, low, high = summarize(list(values.values()))
            assert mean is not None
            difference = None if arm == design.baseline else evidence.subtract(arm, design.baseline, MEAN)
            gain = None
            if difference is not None and difference.mean is not None:
                gain = Estimate(rounded(difference.mean), *difference.interval())
            rows.append(OverallRow(arm, len(values), Estimate(mean, low, high), gain))
    return Aggregate(columns, tuple(rows))
