"""Fine-tuning seeds nested in pre-training seeds: where the spread comes from, and what more of either would buy.

A score is mu + pre-training + fine-tuning. Its mean over n pre-trainings with k fine-tunings each has the variance
(between^2 + within^2 / k) / n: the sample variance of the n means, over n. So the t interval of the means is right as
it is, with n - 1 degrees of freedom, and the k n scores must never be taken for k n pieces of evidence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from paribus.verdict.statistics import mean_sd

Nested = Mapping[int, Mapping[int, float]]  # {pre-training seed: {fine-tuning seed: score}}


class Components(NamedTuple):
    """Standard deviations over pre-trainings and over the `k` fine-tunings of one (a mean where they are not equal)."""

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


def components(groups: Sequence[Sequence[float]]) -> Components | None:
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


def differences(first: Nested, second: Nested) -> list[list[float]]:
    """Of two arms, the differences of their shared fine-tuning seeds in each shared pre-training seed."""
    return [
        [first[seed][tuning] - second[seed][tuning] for tuning in sorted(first[seed].keys() & second[seed].keys())]
        for seed in sorted(first.keys() & second.keys())
    ]
