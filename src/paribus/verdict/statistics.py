"""Means, intervals and paired differences by Student's t. The unit is the pre-training seed.

Intervals and verdicts are Student's at every n: at the 3 to 10 seeds of an ablation it keeps its 95%, and a bootstrap
does not (measured in analysis/results/calibration.json). From 20 seeds on, a bias-corrected bootstrap is printed beside
it as a check of the normality that it assumes (`resampling.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeGuard

LEVEL = 0.95
ALPHA = 1.0 - LEVEL
_LARGEST = 1e100  # a number whose square, summed over any number of runs, is still finite
DIGITS = 10  # statistics are kept to this many significant digits, the same on every machine


class Summary(NamedTuple):
    """n values: mean, sample standard deviation (n - 1) and the t interval of the mean; None if n is too small."""

    n: int
    mean: float | None
    sd: float | None
    ci_low: float | None
    ci_high: float | None


class Paired(NamedTuple):
    """Differences first - second over the seeds that both have; p: two-sided paired t-test against zero."""

    seeds: tuple[int, ...]
    differences: tuple[float, ...]
    summary: Summary
    p: float | None


def is_number(value: float | None) -> TypeGuard[float]:
    """Whether statistics can use the value; neither NaN nor infinity, nor anything beyond 1e100, is a number here."""
    return isinstance(value, int | float) and abs(value) <= _LARGEST


def mean_sd(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and sample standard deviation; None for a single value. Equal values have exactly zero spread."""
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, None
    scale = max(abs(value) for value in values)
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return mean, 0.0 if sd <= 1e-12 * scale else sd


def t_quantile(n: int, alpha: float = ALPHA) -> float:
    """The half width of a two-sided 1 - alpha interval of a mean of n, in standard errors."""
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, 1.0 - alpha / 2.0))


def two_sided(n: int, statistic: float) -> float:
    """P(|T| > |statistic|) for Student's t with n - 1 degrees of freedom."""
    return 2.0 * _upper(n, abs(statistic))


def summarize(values: Sequence[float], alpha: float = ALPHA) -> Summary:
    """One seed has a mean and no interval; no seed has nothing.

    Values of several fine-tuning seeds are averaged before they come here: they share their pre-training and are no
    further evidence about it.
    """
    if not values:
        return Summary(0, None, None, None, None)
    mean, sd = mean_sd(values)
    if sd is None:
        return Summary(1, rounded(mean), None, None, None)
    half = t_quantile(len(values), alpha) * sd / math.sqrt(len(values))
    return Summary(len(values), rounded(mean), rounded(sd), rounded(mean - half), rounded(mean + half))


def pair_seeds(first: Mapping[int, float], second: Mapping[int, float]) -> Paired:
    """Compare two arms over their shared seeds ({seed: value}); seeds that only one of them has are ignored."""
    seeds = tuple(sorted(first.keys() & second.keys()))
    differences = tuple(first[seed] - second[seed] for seed in seeds)
    noise = 1e-12 * max((abs(value) for seed in seeds for value in (first[seed], second[seed])), default=0.0)
    if differences and max(differences) - min(differences) <= noise:  # they differ by the rounding of their terms
        differences = (0.0 if abs(differences[0]) <= noise else differences[0],) * len(differences)
    return Paired(seeds, differences, summarize(differences), t_test(differences))


class Tost(NamedTuple):
    """Two one-sided tests of |mean| < margin: `p`, and the 90% interval that lies inside the margins where p < 5%."""

    p: float
    ci_low: float
    ci_high: float


def tost(values: Sequence[float], margin: float) -> Tost | None:
    """The customary equivalence test (Schuirmann 1987), each side at 5%; None if there is no spread.

    Verdicts require more: both sides at 2.5%, see `words`.
    """
    if len(values) < 2:
        return None
    mean, sd = mean_sd(values)
    if not sd:
        return None
    error = sd / math.sqrt(len(values))
    half = t_quantile(len(values), 2.0 * ALPHA) * error
    return Tost(rounded(_upper(len(values), (margin - abs(mean)) / error)), rounded(mean - half), rounded(mean + half))


def _upper(n: int, statistic: float) -> float:
    """P(T > statistic) for Student's t with n - 1 degrees of freedom."""
    from scipy.special import stdtr

    return float(stdtr(n - 1, -statistic))


def t_test(differences: Sequence[float]) -> float | None:
    """Two-sided p of the mean against zero; None below two values, and if equal differences leave no spread."""
    if len(differences) < 2:
        return None
    mean, sd = mean_sd(differences)
    if not sd:
        return 1.0 if mean == 0.0 else None
    return rounded(two_sided(len(differences), mean / (sd / math.sqrt(len(differences)))))


def mcnemar(first: int, second: int) -> float:
    """Exact two-sided p of McNemar's test (1947): of the examples that one of two models alone solves, `first` are the
    first one's and `second` the second one's.
    """
    from scipy.stats import binomtest

    return rounded(float(binomtest(first, first + second).pvalue)) if first + second else 1.0


def holm(values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p-values (Holm 1979), in the order given."""
    order = sorted(range(len(values)), key=values.__getitem__)
    adjusted, largest = [0.0] * len(values), 0.0
    for rank, at in enumerate(order):
        largest = max(largest, min(1.0, (len(values) - rank) * values[at]))
        adjusted[at] = largest
    return adjusted


def rounded(value: float) -> float:
    """To `DIGITS` significant digits, so that the last bits of a math library never show in a file."""
    return float(f"{value:.{DIGITS}g}")


Nested = Mapping[int, Mapping[int, float]]  # {pre-training seed: {fine-tuning seed: score}}


class Components(NamedTuple):
    """Standard deviations over pre-trainings and over the `k` fine-tunings of one (a mean if they differ)."""

    sd_between: float
    sd_within: float
    k: float

    def sd(self, k: float) -> float:
        """Of a pre-training's mean score with k fine-tunings; `math.inf` leaves what only pre-trainings can mend."""
        return math.sqrt(self.sd_between**2 + self.sd_within**2 / k)

    @property
    def narrower(self) -> float:
        """By which share intervals would shrink with fine-tunings without end; 0 to 1."""
        now = self.sd(self.k)
        return 1.0 - self.sd(math.inf) / now if now > 0.0 else 0.0


def find_components(groups: Sequence[Sequence[float]]) -> Components | None:
    """One-way random effects by the analysis of variance; None below two groups or without a second score in any.

    A negative estimate of the variance between groups is 0.
    """
    filled = [group for group in groups if group]
    sizes = [len(group) for group in filled]
    total, n = sum(sizes), len(filled)
    if n < 2 or total == n:
        return None
    grand = math.fsum(math.fsum(group) for group in filled) / total
    means = [mean_sd(group)[0] for group in filled]
    inside = math.fsum((x - mean) ** 2 for group, mean in zip(filled, means, strict=True) for x in group)
    across = math.fsum(size * (mean - grand) ** 2 for size, mean in zip(sizes, means, strict=True)) / (n - 1)
    within = inside / (total - n)
    k = (total - sum(size * size for size in sizes) / total) / (n - 1)  # Searle 1971, for groups of unequal size
    return Components(math.sqrt(max(0.0, (across - within) / k)), math.sqrt(within), k)


def subtract_nested(first: Nested, second: Nested) -> list[list[float]]:
    """Of two arms, the differences of their shared fine-tuning seeds in each shared pre-training seed."""
    return [
        [first[seed][tuning] - second[seed][tuning] for tuning in sorted(first[seed].keys() & second[seed].keys())]
        for seed in sorted(first.keys() & second.keys())
    ]
