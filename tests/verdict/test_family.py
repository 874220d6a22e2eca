"""The step-down over a table's contrasts: Holm where each has one hypothesis, and no more errors where it has two."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.verdict.claims import Pair
from paribus.verdict.contrast import Contrast, find_rates
from paribus.verdict.family import Deciding, Shares, find_levels, share_out, step_down
from paribus.verdict.ruling import rule
from paribus.verdict.statistics import ALPHA, holm, pair_seeds


@given(st.lists(st.floats(0.0, 1.0), max_size=8))
def test_with_one_hypothesis_each_it_is_holm(values: list[float]) -> None:
    family = step_down([Deciding(p, p) for p in values])
    assert [family.adjust(p) for p in values] == pytest.approx(holm(values))


def test_a_contrast_that_can_still_change_its_verdict_keeps_its_share() -> None:
    open_ended = step_down([Deciding(0.001, 0.4), Deciding(0.04, 0.04)])
    assert [open_ended.adjust(p) for p in (0.001, 0.04)] == [pytest.approx(0.002), pytest.approx(0.08)]
    assert open_ended.level == ALPHA / 2
    through = step_down([Deciding(0.001, 0.02), Deciding(0.04, 0.04)])
    assert [through.adjust(p) for p in (0.001, 0.04)] == [pytest.approx(0.002), pytest.approx(0.04)]
    assert through.level == ALPHA
    assert step_down([]).level == ALPHA


def contrast(differences: list[float], margin: float, column: str = "t/accuracy") -> Contrast:
    pair = pair_seeds(dict(enumerate(differences)), dict.fromkeys(range(99), 0.0))
    return Contrast(column, Pair("a", ">", "b"), margin, pair)


def levels_of(differences: list[float], margin: float) -> Deciding:
    return find_levels([find_rates(contrast(differences, margin))], Shares(1, 1, 0))


def test_claims_about_the_same_intervals_share_a_place_if_that_costs_nothing() -> None:
    values = [0.3, 0.4, 0.5]
    one, other = contrast(values, 1.0), contrast(values, 1.0, "u/accuracy")
    assert share_out([[one], [one], [other]]) == [Shares(1, 1, 0), Shares(1, 1, 0), Shares(1, 1, 1)]
    assert share_out([[one, other], [one, other], [one]]) == [Shares(2, 2, 0), Shares(2, 2, 0), Shares(1, 1, 1)]
    assert share_out([[one, other], [one]]) == [Shares(2, 1, 0), Shares(1, 1, 1)]
    assert share_out([[one, one], [contrast([0.3], 1.0)]]) == [Shares(1, 1, 0), Shares(0, 1, None)]


def test_the_levels_of_a_superiority_claim_with_a_margin() -> None:
    inside = levels_of([0.3, 0.4, 0.5, 0.4], 1.0)  # off zero and inside: both can be said
    beyond = levels_of([2.3, 2.4, 2.5, 2.4], 1.0)  # beyond the margin: it can no longer be equivalent
    between = levels_of([0.8, 1.0, 1.2, 1.01], 1.0)  # off zero, on the margin: it may yet be equivalent
    assert inside.last < 0.02
    assert beyond.first < beyond.last < 0.001
    assert between.first < 0.01
    assert between.last > 0.5


@pytest.mark.parametrize("truth", [0.0, 1.0])
def test_margins_do_not_raise_the_error_rate_of_a_table(truth: float) -> None:
    """Ten contrasts at zero, or at the margin. Plain Holm lets 9 to 15 % of these tables through."""
    random, n, margin, wrong, tables = np.random.default_rng(3), 20, 0.84, 0, 400
    false = ("reproduced", "contradicted") if truth == 0.0 else ("equivalent", "contradicted")
    for _ in range(tables):
        noise = random.normal(truth * margin, 1.0, (10, n))
        claims = [[contrast(row.tolist(), margin, f"t{at}/accuracy")] for at, row in enumerate(noise)]
        verdicts = [outcome.verdict for outcome in rule(claims, count_seeds=False)]
        wrong += any(verdict in false for verdict in verdicts)
    assert wrong / tables < 0.075


@pytest.mark.parametrize(
    ("truth", "false"),
    [
        ((0.0, 0.0, 0.0), ("reproduced", "contradicted")),
        ((9.0, 0.0, 0.0), ("reproduced", "contradicted")),
        ((9.0, 9.0, 0.0), ("reproduced", "contradicted")),
        ((0.0, 0.0, 1.0), ("reproduced", "contradicted")),
        ((1.0, 1.0, 1.0), ("contradicted", "equivalent")),
        ((-1.0, 0.0, 0.0), ("reproduced", "equivalent")),
    ],
)
def test_a_claim_on_three_columns_errs_at_its_level(truth: tuple[float, ...], false: tuple[str, ...]) -> None:
    random, n, margin, wrong, tables = np.random.default_rng(5), 12, 1.1, 0, 1500
    for _ in range(tables):
        noise = random.normal(0.0, 1.0, (3, n)) + margin * np.array(truth)[:, None]
        claim = [contrast(row.tolist(), margin, f"t{at}/accuracy") for at, row in enumerate(noise)]
        wrong += rule([claim], count_seeds=False)[0].verdict in false
    assert wrong / tables < 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / tables)


def test_a_contrast_of_an_equivalent_claim_errs_at_the_level_of_the_claim() -> None:
    """Eight columns without a difference. At the undivided level 14% of these tables call one of them better."""
    random, n, wrong, tables = np.random.default_rng(7), 100, 0, 300
    for _ in range(tables):
        noise = random.normal(0.0, 1.0, (8, n))
        (found,) = rule(
            [[contrast(row.tolist(), 0.48, f"t{at}/accuracy") for at, row in enumerate(noise)]], count_seeds=False
        )
        wrong += any(ruling.verdict in ("reproduced", "contradicted") for ruling in found.rulings)
    assert wrong / tables < 0.075
