"""What stands beside a table's numbers: the paper's effect, where the spread comes from, orders, means over tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paribus.reporting.tables.design import Design
from paribus.reporting.tables.evidence import Evidence
from paribus.verdict.aggregate import Estimate, estimate, improvement, iqm
from paribus.verdict.bootstrap import ENOUGH, Interval, bca
from paribus.verdict.components import Components, components, differences
from paribus.verdict.metrics import POINT, in_points, is_task
from paribus.verdict.power import POWER
from paribus.verdict.published import PublishedTable
from paribus.verdict.rank_agreement import agreement
from paribus.verdict.ruling import Contrast
from paribus.verdict.statistics import rounded, tost

_PERCENT = 1.5  # a published accuracy above this is printed in percent


def beside(design: Design, evidence: Evidence, paper: PublishedTable | None, contrast: Contrast) -> dict[str, Any]:
    """Of a contrast: the published effect in the same unit, intervals of other kinds, the components of its spread."""
    values = contrast.paired.differences
    test = tost(values, contrast.margin) if contrast.margin > 0.0 else None
    return {
        "published": published_effect(design, paper, contrast),
        "equivalence": None if test is None else test._asdict(),
        "ci_bootstrap": _ends(bca(values) if len(values) >= ENOUGH else None),
        "components": spread(_nested_differences(evidence, contrast)),
    }


def _ends(interval: Interval | None) -> list[float] | None:
    return None if interval is None else list(interval)


def published_effect(design: Design, paper: PublishedTable | None, contrast: Contrast) -> float | None:
    """The paper's own difference between the two rows, in the unit of our column; None where it prints none."""
    metric = design.published.get("metrics", {}).get(contrast.column)
    rows = design.published.get("rows", {})
    if paper is None or metric is None or not {contrast.pair.arm, contrast.pair.versus} <= rows.keys():
        return None
    first, second = (paper.row(rows[arm]).values.get(metric) for arm in (contrast.pair.arm, contrast.pair.versus))
    if first is None or second is None:
        return None
    percent = in_points(contrast.column) and max(abs(first), abs(second)) > _PERCENT
    return rounded((first - second) * (POINT if percent else 1.0))


def _nested_differences(evidence: Evidence, contrast: Contrast) -> list[list[float]]:
    if not is_task(contrast.column):
        return []
    first, second = (evidence.nested(arm, contrast.column) for arm in (contrast.pair.arm, contrast.pair.versus))
    return differences(first, second)


def spread(groups: Sequence[Sequence[float]]) -> dict[str, float] | None:
    """Components of the spread as data, with what fine-tuning seeds without end would take off an interval."""
    found: Components | None = components(groups)
    if found is None:
        return None
    numbers = {"sd_between": found.sd_between, "sd_within": found.sd_within, "fine_tuning_seeds": found.k}
    return {name: rounded(value) for name, value in {**numbers, "narrower": found.narrower}.items()}


def remarks(rows: Sequence[Mapping[str, Any]], about: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Notes on the contrasts of the claims (`rows` as in table.json) that n or the fine-tuning seeds leave open."""
    notes, power = [], []
    for contrast in (contrast for row in rows for contrast in row["contrasts"]):
        points = about[contrast["column"]]["unit"] == "points"
        name = f"{contrast['arm']} - {contrast['versus']} on {contrast['column']}"
        seen, papers = contrast["detectable"], contrast["published"]
        least, n = "" if seen is None else _size(seen, points), contrast["n"]
        if least and papers is not None and abs(papers) < seen:
            own = _size(papers, points)
            notes.append(f"{name}: the paper's {own} are less than n = {n} could have seen here ({least}).")
        elif least and contrast["verdict"] == "undecided":
            power.append(f"{name} {least} (n = {n})")
        parts = contrast["components"]
        if parts is not None and contrast["verdict"] == "undecided" and parts["narrower"] >= 0.05:
            share = f"{100 * parts['narrower']:.0f} %"
            notes.append(f"{name}: more fine-tuning seeds would narrow the interval by at most {share}.")
    if power:
        notes.append(
            f"What could have been seen with a chance of {100 * POWER:.0f} %: {'; '.join(dict.fromkeys(power))}."
        )
    return list(dict.fromkeys(notes))


def _size(value: float, points: bool) -> str:
    return f"{abs(value) * 100:.1f} points" if points else f"{abs(value):.3g}"


def orders(design: Design, evidence: Evidence, paper: PublishedTable | None) -> list[dict[str, Any]]:
    """Of each column that has one of the paper's beside it: Kendall's tau between both orders of the arms."""
    if paper is None:
        return []
    found = []
    for column, metric in design.published.get("metrics", {}).items():
        printed = {arm: paper.row(row).values.get(metric) for arm, row in design.published.get("rows", {}).items()}
        numbers = {arm: float(value) for arm, value in printed.items() if value is not None}
        one = agreement({arm: evidence.values(arm, column) for arm in design.arms}, numbers)
        if one is not None:
            low, high = one.interval or (None, None)
            named = {"column": column, "metric": metric, "arms": list(one.arms), "n": one.n}
            found.append({**named, "tau": one.tau, "ci_low": low, "ci_high": high})
    return found


def aggregate(design: Design, evidence: Evidence, deciding: Sequence[str]) -> dict[str, Any]:
    """Each arm over all deciding tasks: interquartile mean, its gain over the baseline, the probability of improvement.

    Only for two tasks or more in points; over the seeds that have them all. Empty otherwise.
    """
    columns = [column for column in deciding if is_task(column) and in_points(column)]
    if len({column.rpartition("/")[0] for column in columns}) < 2:
        return {}
    rows = [_over_tasks(evidence, arm, design.baseline, columns) for arm in design.arms]
    return {"columns": columns, "arms": [row for row in rows if row]}


def _over_tasks(evidence: Evidence, arm: str, baseline: str, columns: Sequence[str]) -> dict[str, Any]:
    import numpy as np

    def scores(name: str, seeds: Sequence[int]) -> Any:
        return np.array([[evidence.values(name, column)[seed] for column in columns] for seed in seeds])

    own, base = (set.intersection(*(set(evidence.values(a, c)) for c in columns)) for a in (arm, baseline))
    if not own:
        return {}
    found = {"name": arm, "n": len(own), "iqm": _estimated(estimate(iqm, scores(arm, sorted(own))))}
    shared = sorted(own & base)
    if arm == baseline or not shared:
        return found
    both = scores(arm, shared), scores(baseline, shared)
    gain = estimate(lambda a, b: iqm(a) - iqm(b), *both)
    return {**found, "gain": _estimated(gain), "improvement": _estimated(estimate(improvement, *both))}


def _estimated(found: Estimate) -> dict[str, float | None]:
    low, high = found.interval or (None, None)
    return {"value": found.value, "ci_low": low, "ci_high": high}
