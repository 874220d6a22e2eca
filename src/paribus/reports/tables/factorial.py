"""The effects of a design of several factors, from the records: all that it estimates, whatever the claims ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from paribus.reports.tables.design import Design
from paribus.reports.tables.evidence import Evidence
from paribus.reports.tables.schema import EffectRow, FactorialTable
from paribus.verdict.factorial import ZERO
from paribus.verdict.power import detectable
from paribus.verdict.statistics import ALPHA, holm, rounded


def estimate_effects(design: Design, evidence: Evidence, columns: Sequence[str]) -> FactorialTable | None:
    """Each effect on each of the columns that some seed has in all arms; None without a design of several factors."""
    factorial = design.factorial
    if factorial is None:
        return None
    rows = [row for column in columns for row in _estimate(design, evidence, column)]
    return FactorialTable(
        kind=factorial.kind,
        folded=factorial.folded,
        factors=factorial.levels,
        generators=factorial.generators,
        arms=factorial.arms,
        said=factorial.describe(),
        equal_errors=factorial.two_levels,
        effects=tuple(rows),
    )


def _estimate(design: Design, evidence: Evidence, column: str) -> list[EffectRow]:
    assert design.factorial is not None
    rows = []
    for effect, aliases in design.factorial.estimated.items():
        difference = evidence.subtract(effect, ZERO, column)
        if difference.mean is None:
            continue
        first, second = evidence.find_sides(effect, ZERO)
        low, high = difference.interval()
        row = EffectRow(
            column=column,
            effect=effect,
            sides=(first.name, second.name),
            n=difference.n,
            mean=rounded(difference.mean),
            sd=None if difference.sd is None else rounded(difference.sd),
            ci_low=low,
            ci_high=high,
            p=difference.p,
            p_holm=None,
            detectable=detectable(difference.error or 0.0, difference.df, ALPHA),
            aliases=aliases,
        )
        rows.append(row)
    tested = [row.p for row in rows if row.p is not None]
    adjusted = iter(holm(tested))
    return [row if row.p is None else replace(row, p_holm=rounded(next(adjusted))) for row in rows]
