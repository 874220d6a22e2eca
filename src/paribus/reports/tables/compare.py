"""Comparisons in a table: the paper's effects and orders, other kinds of intervals, means over tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from paribus.reports.tables.design import Design
from paribus.reports.tables.evidence import Evidence
from paribus.reports.tables.schema import Aggregate, Equivalence, Estimate, OrderRow, OverallRow, Spread
from paribus.verdict import resampling
from paribus.verdict.contrast import Contrast
from paribus.verdict.metrics import MEAN, POINT, in_points, is_task
from paribus.verdict.published import PublishedTable
from paribus.verdict.resampling import ENOUGH, bca
from paribus.verdict.statistics import (
    Summary,
    find_components,
    pair_seeds,
    rounded,
    subtract_nested,
    summarize,
    tost,
)  # fmt: skip

_PERCENT = 1.5  # a published accuracy above this is printed in percent


class Comparison(NamedTuple):
    """Of a contrast: the published effect in our unit, intervals of other kinds, the components of its spread."""

    published: float | None
    equivalence: Equivalence | None
    ci_bootstrap: tuple[float, float] | None
    components: Spread | None


def compare(design: Design, evidence: Evidence, paper: PublishedTable | None, contrast: Contrast) -> Comparison:
    """What is printed beside a contrast."""
    values = contrast.paired.differences
    test = tost(values, contrast.margin) if contrast.margin > 0.0 else None
    interval = bca(values) if len(values) >= ENOUGH else None
    return Comparison(
        _find_published_effect(design, paper, contrast),
        None if test is None else Equivalence(*test),
        None if interval is None else (interval.low, interval.high),
        _split_spread(_subtract_nested(evidence, contrast)),
    )


def find_order_metrics(design: Design) -> Mapping[str, str]:
    """{our column: the paper's metric} as the sweep file maps them."""
    mapped: Mapping[str, str] = design.published.get("metrics", {})
    return mapped


def _find_published_effect(design: Design, paper: PublishedTable | None, contrast: Contrast) -> float | None:
    """The paper's own difference between the two rows, in the unit of our column; None if it prints none."""
    metric = find_order_metrics(design).get(contrast.column)
    rows = design.published.get("rows", {})
    if paper is None or metric is None or not {contrast.pair.arm, contrast.pair.versus} <= rows.keys():
        return None
    first, second = (paper.row(rows[arm]).values.get(metric) for arm in (contrast.pair.arm, contrast.pair.versus))
    if first is None or second is None:
        return None
    percent = in_points(contrast.column) and max(abs(first), abs(second)) > _PERCENT
    return rounded((first - second) * (POINT if percent else 1.0))


def _subtract_nested(evidence: Evidence, contrast: Contrast) -> list[list[float]]:
    if not is_task(contrast.column):
        return []
    first, second = (evidence.nested(arm, contrast.column) for arm in (contrast.pair.arm, contrast.pair.versus))
    return subtract_nested(first, second)


def _split_spread(groups: Sequence[Sequence[float]]) -> Spread | None:
    found = find_components(groups)
    return None if found is None else Spread(*map(rounded, (*found, found.narrower)))


def compare_orders(design: Design, evidence: Evidence, paper: PublishedTable) -> list[OrderRow]:
    """Kendall's tau between both orders of the arms, for each column that the sweep maps to a metric of the paper."""
    found = []
    for column, metric in find_order_metrics(design).items():
        printed = {arm: paper.row(row).values.get(metric) for arm, row in design.published.get("rows", {}).items()}
        numbers = {arm: float(value) for arm, value in printed.items() if value is not None}
        ours = {arm: evidence.values(arm, column) for arm in design.arms}
        if (one := resampling.compare_order(ours, numbers)) is not None:
            found.append(OrderRow(column, metric, one.arms, one.n, one.tau, *(one.interval or (None, None))))
    return found


def summarize_tasks(design: Design, evidence: Evidence) -> Aggregate | None:
    """Each arm's mean over all tasks, and its paired difference from the baseline's, with t intervals.

    Over the seeds that have all of them; None if fewer than two tasks have scores in points.
    """
    columns = evidence.find_averaged()
    if len({column.rpartition("/")[0] for column in columns}) < 2:
        return None
    found = {arm: values for arm in design.arms if (values := evidence.values(arm, MEAN))}
    base = found.get(design.baseline, {})
    rows = (_summarize_arm(arm, values, {} if arm == design.baseline else base) for arm, values in found.items())
    return Aggregate(columns, tuple(rows))


def _summarize_arm(arm: str, values: Mapping[int, float], baseline: Mapping[int, float]) -> OverallRow:
    gain = pair_seeds(values, baseline).summary
    mean = _estimate(summarize(list(values.values())))
    assert mean is not None
    return OverallRow(arm, len(values), mean, _estimate(gain))


def _estimate(found: Summary) -> Estimate | None:
    return None if found.mean is None else Estimate(found.mean, found.ci_low, found.ci_high)
