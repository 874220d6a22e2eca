"""Means, intervals and tests against scipy; power against the noncentral t; coverage by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from paribus.verdict.claims import Pair
from paribus.verdict.contrast import Contrast, find_rates
from paribus.verdict.family import Shares, find_levels
from paribus.verdict.power import Range, find_range, power, seeds_needed
from paribus.verdict.rules import Relation, Route, find_routes
from paribus.verdict.ruling import rule
from paribus.verdict.statistics import (
    PAIRED,
    MeanDifference,
    average,
    find_components,
    holm,
    pair_seeds,
    subtract_nested,
    summarize,
    t_test,
)  # fmt: skip

VALUES = st.lists(st.floats(-100, 100).map(lambda x: round(x, 3)), min_size=2, max_size=12)


@given(VALUES)
@settings(max_examples=60, deadline=None)
def test_summary_is_scipys(values: list[float]) -> None:
    found = summarize(values)
    assert found.n == len(values)
    assert found.mean == pytest.approx(np.mean(values), rel=1e-8, abs=1e-9)
    assert found.sd == pytest.approx(np.std(values, ddof=1), rel=1e-8, abs=1e-8)
    if found.sd:
        low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
        assert (found.ci_low, found.ci_high) == (pytest.approx(low, rel=1e-8), pytest.approx(high, rel=1e-8))


def test_one_seed_has_no_interval_and_none_has_nothing() -> None:
    assert summarize([3.0]) == (1, 3.0, None, None, None)
    assert summarize([]) == (0, None, None, None, None)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=10))
@settings(max_examples=60, deadline=None)
def test_paired_test_is_scipys(pairs: list[tuple[float, float]]) -> None:
    first, second = ([round(x, 4) for x in side] for side in zip(*pairs, strict=True))
    found = pair_seeds(dict(enumerate(first)), dict(enumerate(second)))
    assert found.n == len(pairs)
    if found.sd:
        assert found.p == pytest.approx(stats.ttest_rel(first, second).pvalue, rel=1e-6)


def test_pairing_uses_the_shared_seeds_alone() -> None:
    found = pair_seeds({0: 1.0, 1: 2.0, 5: 9.0}, {1: 1.5, 0: 0.0, 7: 3.0})
    assert found.counts == (2, 2)
    assert found.differences == (1.0, 0.5)


def test_equal_differences_have_no_p_unless_they_are_zero() -> None:
    assert t_test([0.0, 0.0, 0.0]) == 1.0
    assert t_test([0.1 + 0.2 - 0.3 + 0.1] * 3) is None
    assert t_test([1.0]) is None


def test_the_rounding_of_large_numbers_is_no_spread() -> None:
    first, second = [723.4, 1611.2, 4498.7], [723.3, 1611.1, 4498.6]
    found = pair_seeds(dict(enumerate(first)), dict(enumerate(second)))
    assert found.sd == 0.0
    assert found.p is None or found.p == t_test([0.1] * 3)
    tie = pair_seeds({0: 0.1 + 0.2, 1: 0.5}, {0: 0.3, 1: 0.5})
    assert tie.differences == (0.0, 0.0)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_power_of_one_boundary_is_the_noncentral_t() -> None:
    for effect, n in ((1.0, 5), (0.5, 20), (2.0, 4)):
        critical = stats.t.ppf(0.975, n - 1)
        exact = stats.nct.sf(critical, n - 1, effect * np.sqrt(n))
        assert power([Route(effect)], 1.0 / np.sqrt(n), n - 1) == pytest.approx(exact, abs=1e-9)


def test_seeds_needed_is_the_textbook_number() -> None:
    assert seeds_needed([Route(1.0)], 1.0) == 10  # one-sample t-test, d = 1, two-sided 5 %, power 80 %
    assert seeds_needed([Route(0.5)], 1.0) == 34
    assert seeds_needed([Route(0.5)], 1.0, alpha=0.01) == 51
    assert seeds_needed([Route(0.001)], 1.0) is None
    assert seeds_needed([Route(0.0)], 1.0) is None


def spread_of(sd: float, n: int) -> MeanDifference:
    """n pairs with this standard deviation."""
    return MeanDifference(PAIRED, (n, n), 0.0, sd / math.sqrt(n), n - 1, sd)


def test_a_range_of_seeds_is_as_wide_as_what_is_known() -> None:
    few, many = (find_range([Route(1.0)], spread_of(1.0, n)) for n in (5, 200))
    assert few is not None
    assert few.least == 6
    assert few.most is not None
    assert 50 < few.most < 200
    assert many == Range(201, 201)
    vague = find_range([Route(0.1)], spread_of(1.0, 5))
    assert vague is not None
    assert 10 < vague.least < 40
    assert vague.most is None
    assert find_range([Route(0.0)], spread_of(1.0, 5)) is None
    assert str(Range(6, None)) == "needs 6 seeds or more"
    assert (str(Range(6, 71)), str(Range(9, 9))) == ("needs 6 to 71 seeds", "needs about 9 seeds")


def test_the_range_holds_the_number_of_seeds_in_eight_of_ten() -> None:
    """A true distance of one standard deviation needs ten seeds."""
    hits = 0
    for sample in np.random.default_rng(2).normal(1.0, 1.0, (400, 8)):
        found = find_range([Route(abs(sample.mean()))], average(sample.tolist()))
        hits += found is not None and found.least <= 10 <= (found.most or 10)
    assert 0.75 < hits / 400 < 0.93


@pytest.mark.parametrize("effect", [0.05, 0.4])
def test_the_range_of_a_claim_with_a_margin_holds_the_number_of_seeds(effect: float) -> None:
    """Here the spread is what is uncertain: the number grows with its square."""
    needed, hits = seeds_needed(find_routes(">", effect, 0.5), 0.8), 0
    assert needed is not None
    for sample in np.random.default_rng(1).normal(effect, 0.8, (60, 5)):
        found = find_range(find_routes(">", float(sample.mean()), 0.5), average(sample.tolist()))
        hits += found is not None and found.least <= needed <= (found.most or needed)
    assert hits / 60 > 0.8


def test_seeds_needed_for_equivalence_by_simulation() -> None:
    n = seeds_needed([Route(0.5, 0.5)], 0.6)
    assert n is not None
    draws = np.random.default_rng(0).normal(0.0, 0.6, (20_000, n))
    half = stats.t.ppf(0.975, n - 1) * draws.std(1, ddof=1) / np.sqrt(n)
    decided = float((np.abs(draws.mean(1)) + half < 0.5).mean())
    assert 0.79 < decided < 0.9


@pytest.mark.parametrize(("relation", "effect", "n"), [(">", 0.2, 10), (">", 0.24, 40), (">", 0.3, 12), ("~", 0.2, 30)])
def test_the_power_of_a_claim_with_a_margin_by_simulation(relation: Relation, effect: float, n: int) -> None:
    draws = np.random.default_rng(0).normal(effect, 0.8, (20_000, n))
    half = stats.t.ppf(0.975, n - 1) * draws.std(1, ddof=1) / np.sqrt(n)
    inside, off_zero = np.abs(draws.mean(1)) + half < 0.5, draws.mean(1) - half > 0.0
    decided = inside | off_zero if relation == ">" else inside
    assert power(find_routes(relation, effect, 0.5), 0.8 / np.sqrt(n), n - 1) == pytest.approx(decided.mean(), abs=0.01)


@pytest.mark.parametrize(("relation", "margin"), [(">", 0.0), (">", 0.5), (">=", 0.3), ("~", 0.5)])
@given(differences=st.lists(st.integers(-100, 100).map(lambda x: x / 100), min_size=2, max_size=8))
@settings(max_examples=40, deadline=None)
def test_the_claims_p_is_the_level_at_which_the_interval_decides(
    relation: str, margin: float, differences: list[float]
) -> None:
    from paribus.verdict.rules import judge

    pair = Pair("a", relation, "b")  # type: ignore[arg-type]
    contrast = Contrast(
        "t/accuracy", pair, margin, pair_seeds(dict(enumerate(differences)), dict.fromkeys(range(9), 0.0))
    )
    found = find_levels([find_rates(contrast)], Shares(1, 1, 0))
    if not contrast.judged or not 1e-6 < (p := found.first) < 1 - 1e-6:
        return
    for alpha, decided in ((p * 1.001, True), (p * 0.999, False)):
        low, high = stats.t.interval(1 - alpha, len(differences) - 1, np.mean(differences), stats.sem(differences))
        assert (judge(contrast.pair.relation, low, high, margin) != "undecided") is decided


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 5, 10])
def test_coverage_and_false_verdicts_by_simulation(n: int) -> None:
    """Intervals cover at 95 %, and tables of four A/A contrasts are wrong in at most 5 % of the simulations."""
    noise = np.random.default_rng(n)
    covered, false, tables = 0, 0, 4000
    for _ in range(tables):
        pairs = [
            pair_seeds(dict(enumerate(noise.normal(0, 1, n))), dict(enumerate(noise.normal(0, 1, n)))) for _ in range(4)
        ]
        covered += sum(1 for p in pairs if (p.summary.ci_low or 0) <= 0 <= (p.summary.ci_high or 0))
        claims = [[Contrast(f"t{at}/accuracy", Pair("a", ">", "b"), 0.0, pair)] for at, pair in enumerate(pairs)]
        false += any(outcome.verdict in ("reproduced", "contradicted") for outcome in rule(claims))
    assert 0.943 < covered / (4 * tables) < 0.957
    assert false / tables < 0.06


def test_the_components_by_simulation() -> None:
    random = np.random.default_rng(0)
    scores = random.normal(0, 2.0, (400, 1)) + random.normal(0, 1.0, (400, 3))
    found = find_components(scores.tolist())
    assert found is not None
    assert (found.sd_between, found.sd_within, found.k) == (
        pytest.approx(2.0, rel=0.1),
        pytest.approx(1.0, rel=0.05),
        3,
    )
    assert found.sd(3) == pytest.approx(np.std(scores.mean(1), ddof=1), rel=1e-9)
    assert found.sd(math.inf) == found.sd_between
    assert found.narrower == pytest.approx(1 - 2 / math.sqrt(4 + 1 / 3), abs=0.02)


def test_unequal_groups_by_hand() -> None:
    found = find_components([[1.0, 3.0], [5.0], [2.0, 4.0, 6.0]])
    assert found is not None
    assert found.sd_within == pytest.approx(math.sqrt((2 + 0 + 8) / 3))
    assert found.k == pytest.approx((6 - 14 / 6) / 2)


def test_spread_of_fine_tuning_alone_leaves_nothing_between() -> None:
    found = find_components([[0.0, 2.0], [0.0, 2.0], [2.0, 0.0]])
    assert found is not None
    assert (found.sd_between, found.narrower) == (0.0, 1.0)


def test_what_has_no_components() -> None:
    assert find_components([]) is None
    assert find_components([[1.0, 2.0]]) is None
    assert find_components([[1.0], [2.0]]) is None


def test_differences_are_of_shared_seeds_of_both_kinds() -> None:
    first = {0: {0: 1.0, 1: 2.0}, 1: {0: 3.0}, 2: {0: 4.0}}
    second = {0: {1: 0.5, 2: 9.0}, 1: {0: 1.0}}
    assert subtract_nested(first, second) == [[1.5], [2.0]]
