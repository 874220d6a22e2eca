"""Alpha spending: the levels against simulation, the inverse, the rulings, and the loop that adds seeds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from paribus.verdict.claims import Pair
from paribus.verdict.contrast import Contrast
from paribus.verdict.ruling import rule
from paribus.verdict.sequential import Looks, levels, spent
from paribus.verdict.statistics import pair_seeds


def crossed(first: int, most: int, found: list[float], draws: int = 100_000) -> float:
    """Share of simulated series of t-tests that are below their level at any look."""
    sample = np.random.default_rng(first).normal(size=(draws, most))
    sums, squares = sample.cumsum(1), (sample**2).cumsum(1)
    ever = np.zeros(draws, dtype=bool)
    for n, level in zip(range(first, most + 1), found, strict=True):
        mean = sums[:, n - 1] / n
        error = np.sqrt((squares[:, n - 1] / n - mean**2) / (n - 1))
        ever |= 2.0 * stats.t.sf(np.abs(mean) / error, n - 1) <= level
    return float(ever.mean())


@pytest.mark.parametrize(("first", "most", "alpha"), [(3, 8, 0.05), (3, 12, 0.05), (3, 12, 0.01), (5, 9, 0.05)])
def test_all_looks_together_keep_the_error_rate(first: int, most: int, alpha: float) -> None:
    assert crossed(first, most, levels(alpha, first, most)) == pytest.approx(alpha, rel=0.06)
    assert crossed(first, most, [Looks(first, most).level(alpha, n) for n in range(first, most + 1)]) < 1.03 * alpha


def test_without_spending_the_rate_is_far_above() -> None:
    assert crossed(3, 12, [0.05] * 10) > 0.13


def test_one_look_is_the_plain_test_and_all_is_spent_at_the_end() -> None:
    assert levels(0.05, 7, 7) == [pytest.approx(0.05)]
    assert spent(1.0) == spent(3.0) == pytest.approx(1.0)
    assert spent(0.25) == pytest.approx(np.log(1 + (np.e - 1) / 4))


def test_p_is_the_inverse_of_the_level() -> None:
    looks = Looks(3, 12)
    for n in (3, 7, 12):
        for alpha in (0.05, 0.0123, 1e-4):
            assert looks.p(looks.level(alpha, n), n) == pytest.approx(alpha)
            assert looks.level(alpha, n) == pytest.approx(levels(0.97 * alpha, 3, 12)[n - 3], rel=0.02)
    grid = [looks.p(p, 6) for p in np.geomspace(1e-12, 1.0, 40)]
    assert grid == sorted(grid)
    assert grid[-1] == 1.0
    assert (looks.p(1e-9, 2), looks.level(0.05, 2)) == (1.0, 0.0)
    assert looks.level(0.05, 15) == looks.level(0.05, 12)


def test_a_ruling_under_looks_is_stricter() -> None:
    differences = [0.9, 1.4, 0.3, 1.2, 0.8]
    pair = pair_seeds(dict(enumerate(differences)), dict.fromkeys(range(5), 0.0))
    one = Contrast("t/accuracy", Pair("a", ">", "b"), 0.0, pair)
    (fixed,), (looked,) = (found[0].rulings for found in (rule([[one]]), rule([[one]], Looks(3, 12))))
    assert fixed.verdict == "reproduced"
    assert looked.p_holm is not None
    assert fixed.p_holm is not None
    assert looked.p_holm > 2 * fixed.p_holm
    assert rule([[one]], Looks(6, 12))[0].reason == "too few seeds for the first look"
