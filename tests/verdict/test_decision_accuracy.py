"""How often effects keep their sign over scales, on effects that were planted."""

from __future__ import annotations

import math

import numpy as np
import pytest

from paribus.verdict.decision_accuracy import EffectPair, correlate, count_signs, measure_signal


def plant(correlation: float, studies: int, each: int, seed: int = 0) -> list[EffectPair]:
    """Normal effects whose two scales correlate as asked; those of a study share a third of their variance."""
    random = np.random.default_rng(seed)
    mixing = np.array([[1.0, 0.0], [correlation, math.sqrt(1.0 - correlation**2)]])
    pairs = []
    for study in range(studies):
        shared = random.normal(size=2) * math.sqrt(1.0 / 3.0)
        for _ in range(each):
            small, large = mixing @ (shared + random.normal(size=2) * math.sqrt(2.0 / 3.0))
            pairs.append(EffectPair(f"study{study}", float(small), float(large)))
    return pairs


def true_share(correlation: float) -> float:
    """The share of two normal variables of the same sign (Sheppard 1899)."""
    return 0.5 + math.asin(correlation) / math.pi


@pytest.mark.parametrize("correlation", [-0.5, 0.0, 0.8])
def test_planted_effects_are_found(correlation: float) -> None:
    pairs = plant(correlation, studies=100, each=4)
    signs, ranks = count_signs(pairs), correlate(pairs)
    assert signs.share == pytest.approx(true_share(correlation), abs=0.06)
    assert signs.ci_low < true_share(correlation) < signs.ci_high
    # Spearman's of a normal pair (Pearson 1907)
    assert ranks.value == pytest.approx(6.0 / math.pi * math.asin(correlation / 2.0), abs=0.1)
    assert ranks.ci_studies[0] < ranks.value < ranks.ci_studies[1]


def test_the_interval_of_a_share_is_exact_and_ties_are_not_counted() -> None:
    pairs = [EffectPair("a", 1.0, 1.0)] * 3 + [EffectPair("b", 1.0, -1.0), EffectPair("b", 0.0, 1.0)]
    signs = count_signs(pairs)
    assert (signs.same, signs.count, signs.ties, signs.share) == (3, 4, 1, 0.75)
    # Clopper and Pearson for 3 of 4
    assert (signs.ci_low, signs.ci_high) == pytest.approx((0.1941204, 0.9936905), abs=1e-6)
    assert signs.ci_studies is None  # two studies are too few to resample
    assert count_signs(pairs[-1:]).share is None


def test_a_study_whose_contrasts_agree_counts_as_one() -> None:
    """Copies of a contrast narrow the exact interval, but not that over studies."""
    pairs = plant(0.3, studies=12, each=1)
    once, often = count_signs(pairs), count_signs([pair for pair in pairs for _ in range(10)])
    assert often.ci_studies == once.ci_studies
    assert often.ci_high - often.ci_low < 0.5 * (once.ci_high - once.ci_low)


def test_effects_in_one_order_correlate_fully_whatever_their_size() -> None:
    pairs = [EffectPair(str(at), at, at**5) for at in range(1, 8)]
    assert correlate(pairs).value == 1.0
    assert correlate(pairs[:2]).value is None


def test_a_ratio_without_an_effect_is_that_of_chance() -> None:
    random = np.random.default_rng(3)
    runs = random.normal(size=(4000, 5))
    without = measure_signal([(float(one.mean()), float(one.std(ddof=1)), 5) for one in runs])
    assert without.ratio == pytest.approx(without.alone, rel=0.1)
    planted = measure_signal([(3.0 + float(one.mean()), float(one.std(ddof=1)), 5) for one in runs])
    assert planted.ratio == pytest.approx(3.0 / 0.92, rel=0.05)  # the median sd of five is 0.92 of the true one
    assert measure_signal([(0.1, None, 1)]).ratio is None


@pytest.mark.slow
def test_intervals_over_studies_hold_the_truth_in_about_92_percent() -> None:
    held = 0
    for seed in range(150):
        low, high = count_signs(plant(0.6, studies=15, each=4, seed=seed)).ci_studies
        held += low <= true_share(0.6) <= high
    assert 0.86 <= held / 150 <= 0.98
