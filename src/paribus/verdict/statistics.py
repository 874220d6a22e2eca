"""Means, intervals and differences of arms by Student's t. The unit is the pre-training seed.

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


PAIRED, PARTLY_PAIRED, UNPAIRED = "paired", "partly paired", "unpaired"


class MeanDifference(NamedTuple):
    """The mean of a first arm less that of a second one, and what its t interval is made of.

    Args:
        pairing: one of PAIRED, PARTLY_PAIRED, UNPAIRED.
        counts: the runs of each arm that count.
        mean: None if an arm has no run.
        error: the standard error of the mean; None below two runs per arm, 0 if they have no spread.
        df: degrees of freedom of Student's t.
        sd: the error if every arm had one run, and `df_per_seed`: by how much one more seed per arm raises `df`.
        differences: of each seed, if they are paired.
    """

    pairing: str
    counts: tuple[int, int]
    mean: float | None = None
    error: float | None = None
    df: float = 0.0
    sd: float | None = None
    df_per_seed: float = 1.0
    differences: tuple[float, ...] = ()

    @property
    def n(self) -> int:
        """Pairs, or the runs of the arm that has fewer."""
        return min(self.counts)

    @property
    def both_counts(self) -> tuple[int, int] | None:
        """The runs of both arms if they do not share all their seeds."""
        return None if self.pairing == PAIRED else self.counts

    @property
    def p(self) -> float | None:
        """Two-sided p against zero; None below two runs per arm, and if equal differences leave no spread."""
        if self.mean is None or self.error is None:
            return None
        if not self.error:
            return 1.0 if self.mean == 0.0 else None
        return rounded(two_sided(self.df, self.mean / self.error))

    def interval(self, alpha: float = ALPHA) -> tuple[float | None, float | None]:
        """The two-sided interval that errs at rate alpha; None if there is no standard error."""
        if self.mean is None or self.error is None:
            return None, None
        half = t_quantile(self.df, alpha) * self.error if self.error else 0.0
        return rounded(self.mean - half), rounded(self.mean + half)

    def find_rate(self, room: float) -> float:
        """The smallest alpha whose two-sided 1 - alpha interval is less wide than this to either side; 1 for none."""
        return two_sided(self.df, room / self.error) if room > 0.0 and self.error else 1.0


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


def t_quantile(df: float, alpha: float = ALPHA) -> float:
    """The half width of a two-sided 1 - alpha interval with these degrees of freedom, in standard errors."""
    from scipy.special import stdtrit

    return float(stdtrit(df, 1.0 - alpha / 2.0))


def two_sided(df: float, statistic: float) -> float:
    """P(|T| > |statistic|) for Student's t with these degrees of freedom."""
    return 2.0 * _upper(df, abs(statistic))


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
    half = t_quantile(len(values) - 1, alpha) * sd / math.sqrt(len(values))
    return Summary(len(values), rounded(mean), rounded(sd), rounded(mean - half), rounded(mean + half))


def pair_seeds(first: Mapping[int, float], second: Mapping[int, float]) -> MeanDifference:
    """Two arms over their shared seeds ({seed: value}); seeds that only one of them has are ignored."""
    seeds = sorted(first.keys() & second.keys())
    differences = tuple(first[seed] - second[seed] for seed in seeds)
    noise = 1e-12 * max((abs(value) for seed in seeds for value in (first[seed], second[seed])), default=0.0)
    if differences and max(differences) - min(differences) <= noise:  # they differ by the rounding of their terms
        differences = (0.0 if abs(differences[0]) <= noise else differences[0],) * len(differences)
    return average(differences)


def average(differences: Sequence[float]) -> MeanDifference:
    """The mean of the differences of pairs."""
    n = len(differences)
    if not n:
        return MeanDifference(PAIRED, (0, 0))
    mean, sd = mean_sd(differences)
    error = None if sd is None else sd / math.sqrt(n)
    return MeanDifference(PAIRED, (n, n), mean, error, n - 1, sd, differences=tuple(differences))


FEWEST_PAIRS = 3  # fewer cannot tell how strongly the runs of one seed are correlated


def use_all_runs(first: Mapping[int, float], second: Mapping[int, float]) -> MeanDifference:
    """Two arms over all their runs ({seed: value}); which test it is depends only on the seeds that they share.

    All seeds: the paired t-test. None, or fewer than three: Welch's (1947) with Satterthwaite's degrees of freedom
    (1946), but no more of them than at equal variances, and one if an arm has two runs: without this cap, 3 runs
    against 30 err at 8% instead of 5%, and 2 against 5 at 10%. Some: the test of partly overlapping samples (Derrick,
    Russ, Toher and White 2017), whose error takes off the covariance of the shared seeds.
    """
    if first.keys() == second.keys():
        return pair_seeds(first, second)
    shared = sorted(first.keys() & second.keys())
    pairing = PARTLY_PAIRED if len(shared) >= FEWEST_PAIRS else UNPAIRED
    counts = (len(first), len(second))
    if not first or not second:
        return MeanDifference(pairing, counts)
    (one, sd_one), (other, sd_other) = mean_sd(list(first.values())), mean_sd(list(second.values()))
    if sd_one is None or sd_other is None:
        return MeanDifference(pairing, counts, one - other)
    n_one, n_other = counts
    variance = sd_one**2 / n_one + sd_other**2 / n_other
    if not variance:
        return MeanDifference(pairing, counts, one - other, 0.0, min(counts) - 1, 0.0)
    df = min(_satterthwaite(sd_one**2, sd_other**2, counts), _satterthwaite(1.0, 1.0, counts))
    df = 1.0 if min(counts) == 2 else df
    if pairing == UNPAIRED:
        sd, per_seed = math.hypot(sd_one, sd_other), _satterthwaite(sd_one**2, sd_other**2, (2, 2))
        return MeanDifference(pairing, counts, one - other, math.sqrt(variance), df, sd, per_seed)
    r = _correlate([first[seed] for seed in shared], [second[seed] for seed in shared])
    pairs, single = len(shared), n_one + n_other - 2 * len(shared)
    variance -= 2.0 * r * sd_one * sd_other * pairs / (n_one * n_other)
    df = pairs - 1 + (df - pairs + 1) * single / (single + 2 * pairs)
    sd = math.sqrt(max(0.0, sd_one**2 + sd_other**2 - 2.0 * r * sd_one * sd_other))
    return MeanDifference(pairing, counts, one - other, math.sqrt(variance), df, sd)


def _satterthwaite(first: float, second: float, counts: tuple[int, int]) -> float:
    """Degrees of freedom of a difference of two means, from the variances of one run of each arm."""
    parts = [variance / n for variance, n in zip((first, second), counts, strict=True)]
    return sum(parts) ** 2 / sum(part**2 / (n - 1) for part, n in zip(parts, counts, strict=True))


def _correlate(first: Sequence[float], second: Sequence[float]) -> float:
    """Pearson's r; 0 if one side has no spread."""
    (one, sd_one), (other, sd_other) = mean_sd(first), mean_sd(second)
    if not sd_one or not sd_other:
        return 0.0
    products = math.fsum((a - one) * (b - other) for a, b in zip(first, second, strict=True))
    return min(1.0, max(-1.0, products / (len(first) - 1) / (sd_one * sd_other)))


class Tost(NamedTuple):
    """Two one-sided tests of |mean| < margin: `p`, and the 90% interval that lies inside the margins where p < 5%."""

    p: float
    ci_low: float
    ci_high: float


def tost(difference: MeanDifference, margin: float) -> Tost | None:
    """The customary equivalence test (Schuirmann 1987), each side at 5%; None if there is no spread.

    Verdicts require more: both sides at 2.5%, see `rules`.
    """
    if difference.mean is None or not difference.error:
        return None
    low, high = difference.interval(2.0 * ALPHA)
    assert low is not None
    assert high is not None
    return Tost(rounded(_upper(difference.df, (margin - abs(difference.mean)) / difference.error)), low, high)


def _upper(df: float, statistic: float) -> float:
    """P(T > statistic) for Student's t with these degrees of freedom."""
    from scipy.special import stdtr

    return float(stdtr(df, -statistic))


def t_test(differences: Sequence[float]) -> float | None:
    """Two-sided p of the mean against zero; None below two values, and if equal differences leave no spread."""
    return average(differences).p


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
