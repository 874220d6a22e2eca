"""The step-down over a table's contrasts: Holm where each has one hypothesis, and no more errors where it has two."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.verdict.claims import Pair
from paribus.verdict.ruling import Contrast, Deciding, find_levels, rule, step_down
from paribus.verdict.statistics import ALPHA, holm, pair_seeds


@given(st.lists(st.floats(0.0, 1.0), max_size=8))
def test_with_one_hypothesis_each_it_is_holm(values: list[float]) -> None:
    family = step_down([Deciding(p, p) for p in values])
    assert family.adjusted == pytest.approx(holm(values))


def test_a_contrast_that_can_still_change_its_verdict_keeps_its_share() -> None:
    open_ended = step_down([Deciding(0.001, 0.4), Deciding(0.04, 0.04)])
    assert open_ended.adjusted == [pytest.approx(0.002), pytest.approx(0.08)]
    assert open_ended.level == ALPHA / 2
    through = step_down([Deciding(0.001, 0.02), Deciding(0.04, 0.04)])
    assert through.adjusted == [pytest.approx(0.002), pytest.approx(0.04)]
    assert through.level == ALPHA
    assert step_down([]).adjusted == []


def contrast(differences: list[float], margin: float) -> Contrast:
    pair = pair_seeds(dict(enumerate(differences)), dict.fromkeys(range(99), 0.0))
    return Contrast("t/accuracy", Pair("a", ">", "b"), margin, pair)


def test_the_levels_of_a_superiority_claim_with_a_margin() -> None:
    inside = find_levels(contrast([0.3, 0.4, 0.5, 0.4], 1.0))  # off zero and inside: both can be said
    beyond = find_levels(contrast([2.3, 2.4, 2.5, 2.4], 1.0))  # beyond the margin: it can no longer be equivalent
    between = find_levels(contrast([0.8, 1.0, 1.2, 1.01], 1.0))  # off zero, on the margin: it may yet be equivalent
    assert inside is not None
    assert beyond is not None
    assert between is not None
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
        verdicts = [ruling.verdict for ruling in rule([contrast(row.tolist(), margin) for row in noise])]
        wrong += any(verdict in false for verdict in verdicts)
    assert wrong / tables < 0.075
