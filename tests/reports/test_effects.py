"""Effects against compute over the scales of a sweep."""

from __future__ import annotations

import pytest
from fake_records import LOSS, TASK, design, make_table, own, study
from scipy import stats

from paribus.reports.effects import Ladder, build_ladders, rate_stability
from paribus.reports.tables.schema import Table


def table(scale: str, flops: float, shift: float = 0.0) -> Table:
    records = [r | {"scale": scale, "budget": r["budget"] | {"flops": flops}} for r in study()]
    for r in records:
        r["metrics"] = r["metrics"] | {LOSS: r["metrics"][LOSS] + (shift if r["arm"] == "dynamic" else 0.0)}
    return make_table(design(scale=scale), records)


def of(found: list[Ladder], column: str) -> Ladder:
    return next(ladder for ladder in found if ladder.column == column)


def test_rungs_are_ordered_by_scale_and_carry_their_table() -> None:
    small, large = table("smoke", 1e12), table("cpu", 1e14)
    found = of(build_ladders([large, small]), LOSS)
    assert [(rung.scale, rung.flops) for rung in found.rungs] == [("smoke", 1e12), ("cpu", 1e14)]
    contrast = small.claims[0].contrasts[0]
    assert (found.rungs[0].difference, found.rungs[0].ci_low) == (contrast.difference, contrast.ci_low)
    assert (found.arm, found.relation, found.versus, found.margin) == ("dynamic", ">=", "static_x10", 0.02)
    assert found.lower_is_better
    assert not of(build_ladders([small]), TASK).lower_is_better


def test_a_scale_without_flops_keeps_its_place() -> None:
    found = of(build_ladders([table("smoke", 1e12), table("cpu", 0.0)]), LOSS)
    assert [rung.scale for rung in found.rungs] == ["smoke", "cpu"]


def test_the_change_between_the_ends_is_welchs() -> None:
    found = of(build_ladders([table("smoke", 1e12), table("cpu", 1e14, shift=0.3)]), LOSS)
    assert found.change is not None
    assert found.change.difference == pytest.approx(0.3)
    ends = [(rung.difference, rung.sd, rung.n) for rung in found.rungs]
    half = stats.ttest_ind_from_stats(*ends[1], *ends[0], equal_var=False)
    assert half.pvalue < 0.05
    assert found.change.ci_low > 0.0
    assert found.stability == "changes"
    assert of(build_ladders([table("smoke", 1e12)]), LOSS).change is None


def test_a_scale_at_which_an_arm_learned_nothing_has_no_change() -> None:
    records = [{**record, "scale": "cpu", "own": own(5.9)} for record in study()]
    stuck = make_table(design(scale="cpu"), records)
    found = of(build_ladders([table("smoke", 1e12), stuck]), LOSS)
    assert [rung.barred for rung in found.rungs] == [False, True]
    assert found.change is None


@pytest.mark.parametrize(
    ("verdicts", "word"),
    [
        (["reproduced", "reproduced"], "stable"),
        (["reproduced", "undecided", "reproduced"], "stable"),
        (["reproduced", "contradicted"], "changes"),
        (["equivalent", "reproduced"], "changes"),
        (["reproduced", "undecided"], "open"),
        (["undecided", "not run"], "open"),
        ([], "open"),
    ],
)
def test_stability(verdicts: list[str], word: str) -> None:
    assert rate_stability(verdicts) == word
