"""Nested seeds: the components of the spread, and no evidence made of fine-tuning seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from paribus.verdict.statistics import find_components, subtract_nested


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
