"""What a table compares its numbers with: the paper's effects and orders, other intervals, means over tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from paribus.reporting.tables.design import Design
from paribus.reporting.tables.evidence import Evidence
from paribus.reporting.tables.schema import Aggregate, Equivalence, Estimate, OrderRow, OverallRow, Spread
from paribus.verdict import aggregate
from paribus.verdict.bootstrap import ENOUGH, bca
from paribus.verdict.metrics import POINT, in_points, is_task
from paribus.verdict.published import PublishedTable
from paribus.verdict.ruling import Contrast
from paribus.verdict.statistics import find_components, rounded, subtract_nested, tost

if TYPE_CHECKING:
    from paribus.verdict.aggregate import Scores

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
        if (one := aggregate.compare_order(ours, numbers)) is not None:
            found.append(OrderRow(column, metric, one.arms, one.n, one.tau, *(one.interval or (None, None))))
    return found


def summarize_tasks(design: Design, evidence: Evidence, deciding: Sequence[str]) -> Aggregate | None:
    """Each arm over all deciding tasks: interquartile mean, its gain over the baseline, the probability of improvement.

    Over the seeds that have all of them; None if fewer than two tasks have scores in points.
    """
    columns = [column for column in deciding if is_task(column) and in_points(column)]
    if len({column.rpartition("/")[0] for column in columns}) < 2:
        return None
    rows = [_summarize_arm(evidence, arm, design.baseline, columns) for arm in design.arms]
    return Aggregate(tuple(columns), tuple(row for row in rows if row))


def _summarize_arm(evidence: Evidence, arm: str, baseline: str, columns: Sequence[str]) -> OverallRow | None:
    import numpy as np

    def scores(name: str, seeds: Sequence[int]) -> Scores:
        return np.array([[evidence.values(name, column)[seed] for column in columns] for seed in seeds])

    own, base = (set.intersection(*(set(evidence.values(a, c)) for c in columns)) for a in (arm, baseline))
    if not own:
        return None
    iqm = _estimate(aggregate.estimate(aggregate.iqm, scores(arm, sorted(own))))
    shared = sorted(own & base)
    if arm == baseline or not shared:
        return OverallRow(arm, len(own), iqm)
    both = scores(arm, shared), scores(baseline, shared)
    gain = aggregate.estimate(lambda a, b: aggregate.iqm(a) - aggregate.iqm(b), *both)
    improvement = aggregate.estimate(aggregate.improvement, *both)
    return OverallRow(arm, len(own), iqm, _estimate(gain), _estimate(improvement))


def _estimate(found: aggregate.Estimate) -> Estimate:
    return Estimate(found.value, *(found.interval or (None, None)))
