"""Bootstrap, orders and the customary equivalence test, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from paribus.verdict.resampling import (
    _violations,
    bca,
    compare_order,
    kendall,
    multibootstrap,
    stochastic_order,
    superiority,
)
from paribus.verdict.statistics import average, tost

RANDOM = np.random.default_rng(4)


def test_bca_is_scipys() -> None:
    values = RANDOM.gamma(2.0, size=30)
    found = bca(values.tolist(), resamples=20_000)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=20_000, rng=np.random.default_rng(0)).confidence_interval
    assert found is not None
    assert found.low == pytest.approx(theirs.low, abs=0.02)
    assert found.high == pytest.approx(theirs.high, abs=0.02)
    assert bca(values.tolist()) == bca(values.tolist()), "the same numbers for the same records"
    assert bca([0.5, 0.5, 0.5]) is None
    assert bca([]) is None


def test_bca_is_too_narrow_at_five_seeds_where_t_is_not() -> None:
    draws = np.random.default_rng(1).normal(size=(400, 5))
    found = [bca(row.tolist(), resamples=500) for row in draws]
    assert np.mean([interval is not None and interval.low <= 0 <= interval.high for interval in found]) < 0.92
    assert stats.ttest_1samp(draws, 0.0, axis=1).pvalue.__gt__(0.05).mean() > 0.92


def test_kendall_is_scipys() -> None:
    for _ in range(20):
        one, other = RANDOM.integers(0, 5, (2, 6)).tolist()
        theirs = stats.kendalltau(one, other).statistic
        assert kendall(one, other) == (None if np.isnan(theirs) else pytest.approx(theirs))


def test_our_order_beside_the_papers() -> None:
    ours = {arm: {seed: at + 0.01 * seed for seed in range(5)} for at, arm in enumerate("abcd")}
    same = compare_order(ours, {"a": 80.0, "b": 81.0, "c": 82.0, "z": 9.0})
    assert same is not None
    assert (same.tau, same.interval, same.n, same.arms) == (1.0, (1.0, 1.0), 5, ("a", "b", "c"))
    turned = compare_order(ours, {"a": 3.0, "b": 2.0, "c": 1.0})
    assert turned is not None
    assert turned.tau == -1.0
    assert compare_order(ours, {"a": 1.0, "b": 2.0}) is None, "two arms have no order"
    assert compare_order(ours, {"a": 1.0, "b": 1.0, "c": 1.0}) is None
    noisy = {arm: {seed: at + 5 * RANDOM.normal() for seed in range(5)} for at, arm in enumerate("abcd")}
    found = compare_order(noisy, {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0})
    assert found is not None
    assert found.interval is not None
    assert found.interval.low < found.interval.high


def test_tost_is_two_t_tests() -> None:
    values = RANDOM.normal(0.1, 0.3, 12)
    found = tost(average(values.tolist()), 0.4)
    assert found is not None
    sides = (
        stats.ttest_1samp(values, -0.4, alternative="greater").pvalue,
        stats.ttest_1samp(values, 0.4, alternative="less").pvalue,
    )
    assert found.p == pytest.approx(max(sides))
    assert (found.p < 0.05) == (found.ci_low > -0.4 and found.ci_high < 0.4)
    assert tost(average([0.1]), 0.4) is None
    assert tost(average([0.1, 0.1]), 0.4) is None


def test_superiority_is_mann_and_whitneys_u() -> None:
    first, second = RANDOM.normal(0.5, 1.0, 7), RANDOM.normal(0.0, 1.0, 5)
    u = stats.mannwhitneyu(first, second).statistic
    assert superiority(first.tolist(), second.tolist()) == pytest.approx(u / 35)
    assert superiority([1.0, 1.0], [1.0]) == 0.5
    assert superiority([], [1.0]) is None


def test_stochastic_order_of_arms_apart_and_alike() -> None:
    low, high = RANDOM.normal(0.0, 1.0, 20), RANDOM.normal(5.0, 1.0, 20)
    assert stochastic_order(high.tolist(), low.tolist()) == 0.0
    assert stochastic_order(low.tolist(), high.tolist()) == 1.0
    one, other = stochastic_order([1.0, 2.0, 3.0], [1.5, 2.5]), stochastic_order([1.5, 2.5], [1.0, 2.0, 3.0])
    assert one is not None
    assert other is not None
    assert min(one, other) > 0.5  # neither is called better
    assert stochastic_order([1.0, 1.0], [1.0, 1.0]) is None


def test_the_violation_ratio_of_two_steps() -> None:
    """Quantiles 0, 3 against 1, 2: the first is one below in half of the range and one above in the other."""
    found = _violations(np.array([[3.0, 0.0], [0.0, 4.0]]), np.array([[1.0, 2.0]] * 2))
    assert found.tolist() == pytest.approx([0.5, 0.2])


@pytest.mark.parametrize("shared", [True, False])
def test_the_multibootstrap_resamples_seeds_and_examples(shared: bool) -> None:
    """Its spread is that of both: of a mean over seeds, and over examples."""
    luck_S1, hard_1N = RANDOM.normal(0.0, 1.0, (12, 1)), RANDOM.normal(0.0, 2.0, (1, 50))
    first_SN = luck_S1 + RANDOM.normal(0.0, 0.1, (12, 50))
    second_SN = (luck_S1 if shared else RANDOM.normal(0.0, 1.0, (12, 1))) + hard_1N
    found = multibootstrap(first_SN, second_SN, shared)
    assert found is not None
    assert found.difference == pytest.approx(float(first_SN.mean() - second_SN.mean()))
    seeds = 0.0 if shared else (first_SN.mean(1).var() + second_SN.mean(1).var()) / 12
    spread = np.sqrt(seeds + (first_SN.mean(0) - second_SN.mean(0)).var() / 50)
    assert found.high - found.low == pytest.approx(3.92 * spread, rel=0.1)
    assert multibootstrap(first_SN[:1], second_SN[:1], shared) is None
    assert multibootstrap(first_SN, first_SN, True).p == 1.0  # type: ignore[union-attr]
