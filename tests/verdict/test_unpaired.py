"""Arms that do not share all their seeds, and runs without a number."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from paribus.verdict.claims import Pair
from paribus.verdict.contrast import Contrast, Share
from paribus.verdict.power import find_range, seeds_needed
from paribus.verdict.rules import Relation, Route
from paribus.verdict.ruling import Outcome, rule
from paribus.verdict.statistics import PAIRED, PARTLY_PAIRED, UNPAIRED, MeanDifference, pair_seeds, use_all_runs

RANDOM = np.random.default_rng(20190726)


def arm(values: object, start: int = 0) -> dict[int, float]:
    """{seed: value}"""
    return {start + at: float(value) for at, value in enumerate(np.asarray(values))}


def test_the_seeds_alone_choose_the_test() -> None:
    first, second = arm([0.80, 0.81, 0.83, 0.82]), arm([0.78, 0.80, 0.81, 0.79])
    assert use_all_runs(first, second) == pair_seeds(first, second)
    assert use_all_runs(first, second).pairing == PAIRED
    assert use_all_runs(first, arm([0.78, 0.80, 0.81, 0.79], start=1)).pairing == PARTLY_PAIRED
    assert use_all_runs(first, arm([0.78, 0.80, 0.81, 0.79], start=2)).pairing == UNPAIRED


def test_arms_of_equal_size_have_welchs_test() -> None:
    first, second = RANDOM.normal(0.0, 1.0, 6), RANDOM.normal(0.5, 3.0, 6)
    found, exact = use_all_runs(arm(first), arm(second, start=100)), stats.ttest_ind(first, second, equal_var=False)
    assert found.df == pytest.approx(exact.df)
    assert found.p == pytest.approx(exact.pvalue, rel=1e-8)
    assert found.interval() == pytest.approx((exact.confidence_interval().low, exact.confidence_interval().high))
    assert found.counts == (6, 6)


def test_all_runs_count_if_some_seeds_are_shared() -> None:
    """Over the four shared seeds the difference is +0.0001, over all runs it is -0.0006."""
    first = arm([0.8000, 0.8010, 0.7990, 0.8004])
    second = arm([0.8000, 0.8008, 0.7990, 0.8002, 0.8012, 0.8016, 0.8010, 0.8018])
    found = use_all_runs(first, second)
    assert found.mean == pytest.approx(float(np.mean(list(first.values())) - np.mean(list(second.values()))))
    assert found.mean == pytest.approx(-0.0006, abs=5e-5)
    assert pair_seeds(first, second).mean == pytest.approx(0.0001, abs=2e-5)
    assert found.counts == (4, 8)
    turned = use_all_runs(second, first)
    assert (turned.mean, turned.error, turned.df) == pytest.approx((-found.mean, found.error, found.df))


def test_shared_luck_narrows_a_partly_paired_interval() -> None:
    luck = RANDOM.normal(0.0, 1.0, 9)
    first, second = luck[:8] + RANDOM.normal(0.0, 0.1, 8), luck + RANDOM.normal(0.0, 0.1, 9)
    partly, apart = use_all_runs(arm(first), arm(second)), use_all_runs(arm(first), arm(second, start=100))
    assert partly.error is not None
    assert apart.error is not None
    assert partly.mean == apart.mean
    assert partly.error < apart.error / 2


@pytest.mark.parametrize(
    ("counts", "shared", "spread"), [((2, 5), 0, 0.25), ((3, 30), 0, 1.0), ((5, 10), 0, 2.0), ((8, 4), 4, 1.0)]
)
def test_few_runs_against_many_err_at_the_level(counts: tuple[int, int], shared: int, spread: float) -> None:
    """Welch's test alone errs at 10% with 2 runs against 5, and at 8% with 3 against 30."""
    rng, wrong, tables = np.random.default_rng(3), 0, 3000
    for _ in range(tables):
        luck = rng.normal(0.0, 1.0, shared)
        first, second = rng.normal(0.0, 1.0, counts[0]), rng.normal(0.0, spread, counts[1])
        first[:shared] += luck
        second[:shared] += luck
        found = use_all_runs(arm(first), arm(second, start=0 if shared else 100))
        wrong += found.p is not None and found.p < 0.05
    assert wrong / tables < 0.066


def test_one_run_has_no_interval_and_equal_runs_decide_nothing() -> None:
    assert use_all_runs({}, arm([1.0])).mean is None
    single = use_all_runs(arm([0.9]), arm([0.7, 0.8], start=5))
    assert (single.mean, single.p, single.interval()) == (pytest.approx(0.15), None, (None, None))
    (outcome,) = rule([[Contrast("t/accuracy", Pair("a", ">", "b"), 0.0, single)]])
    assert outcome.reason == "one run of a has no interval"
    equal = use_all_runs(arm([0.9, 0.9]), arm([0.7, 0.7, 0.7], start=5))
    (outcome,) = rule([[Contrast("t/accuracy", Pair("a", ">", "b"), 0.0, equal)]])
    assert (outcome.verdict, outcome.more) == ("undecided", False)


def test_seeds_needed_of_unpaired_arms_by_simulation() -> None:
    sd = math.hypot(1.0, 2.0)
    needed = seeds_needed([Route(2.0)], sd, df_per_seed=(1 + 4) ** 2 / (1 + 16))
    assert needed is not None
    rng, decided = np.random.default_rng(5), 0
    for _ in range(1000):
        first, second = rng.normal(2.0, 1.0, needed), rng.normal(0.0, 2.0, needed)
        p = use_all_runs(arm(first), arm(second, start=1000)).p
        decided += p is not None and p < 0.05
    assert 0.76 < decided / 1000 < 0.86
    found = find_range([Route(2.0)], use_all_runs(arm([2.0, 3.0, 1.0, 2.5]), arm([0.0, 2.0, -2.0], start=9)))
    assert found is not None
    assert found.least >= 4


CLEAR = MeanDifference(UNPAIRED, (4, 4), 0.05, 0.001, 6.0, 0.002)  # the first arm is better


def ruled(relation: Relation, difference: MeanDifference, margin: float, diverged: tuple[int, int]) -> Outcome:
    shares = (Share(diverged[0], 4 + diverged[0]), Share(diverged[1], 4 + diverged[1]))
    pair = Pair("a", relation, "b")
    return rule([[Contrast("t/accuracy", pair, margin, difference, diverged=shares)]])[0]


@pytest.mark.parametrize(
    ("relation", "turned", "margin", "diverged", "verdict"),
    [
        (">", False, 0.0, (0, 1), "reproduced"),  # the worse arm diverged: leaving it out changes nothing
        (">", False, 0.0, (1, 0), "undecided"),
        (">", True, 0.0, (1, 0), "contradicted"),
        (">", True, 0.0, (0, 1), "undecided"),
        (">=", False, 0.01, (2, 0), "undecided"),
        (">=", False, 0.01, (0, 2), "reproduced"),
        ("~", False, 0.1, (0, 1), "undecided"),
        (">", False, 0.1, (0, 1), "undecided"),  # equivalent without that run
        ("~", False, 0.01, (0, 1), "contradicted"),
        ("~", False, 0.01, (1, 0), "undecided"),
    ],
)
def test_a_diverged_run_is_the_worst(
    relation: Relation, turned: bool, margin: float, diverged: tuple[int, int], verdict: str
) -> None:
    difference = CLEAR._replace(mean=-0.05) if turned else CLEAR
    assert find_verdict(relation, difference, margin, (0, 0)) != "undecided"
    found = ruled(relation, difference, margin, diverged)
    assert found.verdict == verdict
    name, count = ("a", diverged[0]) if diverged[0] else ("b", diverged[1])
    runs = f"{count} of {4 + count} runs of {name}"
    worst = f"{runs} diverged, and a diverged run counts as the worst"
    assert found.reason == (worst if verdict == "undecided" else f"not counting {runs}, which diverged")


def find_verdict(relation: Relation, difference: MeanDifference, margin: float, diverged: tuple[int, int]) -> str:
    return ruled(relation, difference, margin, diverged).verdict
