"""Statistics over settings: prediction intervals, exact counts, regressions, and the words that follow."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from paribus.verdict.rules import CONTRADICTED, EQUIVALENT, REPRODUCED, UNDECIDED, Relation
from paribus.verdict.universe import (
    FACTORS,
    choose_words,
    count_holding,
    fit_factor,
    is_everywhere,
    is_log,
    predict,
    share_among_factors,
)

EFFECTS = [0.3, -0.1, 0.4, 0.2, 0.5, 0.1, 0.25, 0.35]


def test_a_prediction_interval_is_wider_than_that_of_the_mean_by_the_spread_of_one_more_setting() -> None:
    found = predict(EFFECTS)
    assert found is not None
    n, mean, sd = len(EFFECTS), math.fsum(EFFECTS) / len(EFFECTS), stats.tstd(EFFECTS)
    half = stats.t.isf(0.8 * 0.025, n - 1) * sd * math.sqrt(1 + 1 / n)
    assert (found.low, found.high, found.level) == pytest.approx((mean - half, mean + half, 0.95))
    wide = predict([0.0] * 30 + [1.0])
    assert wide is not None
    assert wide.high == 1.0, "what was seen may be seen again"
    assert predict(EFFECTS[:1]) is None
    assert predict([0.2] * 4) is None


@pytest.mark.parametrize(
    ("relation", "margin", "part"), [(">", 0.2, 7), ("> by", 0.2, 5), (">=", 0.2, 8), (">=", 0.05, 7), ("~", 0.22, 3)]
)
def test_the_settings_in_which_a_claim_holds_are_counted_with_the_exact_interval(
    relation: Relation, margin: float, part: int
) -> None:
    found = count_holding(relation, EFFECTS, margin)
    exact = stats.binomtest(part, len(EFFECTS)).proportion_ci(method="exact")
    assert (found.part, found.whole) == (part, len(EFFECTS))
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))


def test_numbers_are_fitted_by_a_line() -> None:
    values = ["1e-3", "2e-3", "4e-3", "8e-3", "1e-3", "2e-3", "4e-3", "8e-3"]
    found = fit_factor(values, EFFECTS, log=True)
    line = stats.linregress([math.log(float(value)) for value in values], EFFECTS)
    assert found is not None
    assert found.p == pytest.approx(line.pvalue)
    assert found.fitted == pytest.approx(
        {end: line.intercept + line.slope * math.log(float(end)) for end in ("1e-3", "8e-3")}
    )


def test_names_are_compared_by_an_analysis_of_variance() -> None:
    values = ["a", "a", "b", "b", "c", "c", "a", "b"]
    found = fit_factor(values, EFFECTS, log=None)
    groups = {name: [e for v, e in zip(values, EFFECTS, strict=True) if v == name] for name in "abc"}
    assert found is not None
    assert found.p == pytest.approx(stats.f_oneway(*groups.values()).pvalue)
    assert found.fitted == pytest.approx({name: sum(group) / len(group) for name, group in groups.items()})


def test_nothing_is_fitted_where_nothing_can_be_tested() -> None:
    assert fit_factor(["1", "2", "3"], EFFECTS[:3], log=True) is None, "too few settings"
    assert fit_factor(["1"] * 8, EFFECTS, log=True) is None, "one value"
    assert fit_factor(["1", "2"] * 4, [0.1] * 8, log=True) is None, "no spread"
    assert fit_factor(list("abcd"), EFFECTS[:4], log=None) is None, "no two settings of one name"


def test_lists_of_numbers_count_by_their_logarithm_if_they_are_positive() -> None:
    assert is_log(["128", "256"]) is True
    assert is_log(["0", "0.1"]) is False
    assert is_log(["docstrings", "prose"]) is None


def test_the_factors_of_a_table_share_a_fifth_of_its_error_rate() -> None:
    assert share_among_factors([0.001, 0.04, 0.5]) == pytest.approx([3 * 0.001 / FACTORS, 2 * 0.04 / FACTORS, 1.0])


@pytest.mark.parametrize(
    ("verdict", "relation", "low", "high", "everywhere"),
    [
        (REPRODUCED, ">", 0.02, 0.3, True),
        (REPRODUCED, ">", 0.005, 0.3, False),  # above zero, but not beyond the margin
        (REPRODUCED, "> by", 0.02, 0.3, True),
        (REPRODUCED, ">=", -0.005, 0.3, True),
        (REPRODUCED, ">=", -0.02, 0.3, False),
        (REPRODUCED, "~", -0.005, 0.005, True),
        (REPRODUCED, "~", -0.02, 0.005, False),
        (EQUIVALENT, ">", -0.005, 0.005, True),
        (CONTRADICTED, ">", -0.3, -0.02, True),
        (CONTRADICTED, ">", -0.3, -0.005, False),
        (CONTRADICTED, ">=", -0.3, -0.02, True),
        (CONTRADICTED, "> by", -0.3, 0.005, True),
        (CONTRADICTED, "~", 0.02, 0.3, True),
        (UNDECIDED, ">", 0.02, 0.3, False),
    ],
)
def test_nearly_everywhere_is_beyond_the_margin(
    verdict: str, relation: Relation, low: float, high: float, everywhere: bool
) -> None:
    assert is_everywhere(verdict, relation, low, high, margin=0.01) is everywhere


def test_words() -> None:
    assert choose_words(REPRODUCED, False, []) == ("holds on average",)
    assert choose_words(REPRODUCED, True, ["a", "b"]) == ("holds nearly everywhere", "depends on a, b")
    assert choose_words(CONTRADICTED, False, []) == ("fails on average",)
    assert choose_words(EQUIVALENT, True, []) == ("makes no difference nearly everywhere",)
    assert choose_words(UNDECIDED, False, ["a"]) == ("depends on a",)
    assert choose_words(UNDECIDED, False, []) == ()
