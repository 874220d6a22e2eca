"""Whether a claim holds in other settings: statistics over the settings of a universe, of which each gives one effect.

The mean effect and its verdict are those of any table, with settings in the place of seeds (`ruling.py`). Beside it:

- The prediction interval: where the effect in one further setting will lie, mean +- t sqrt(1 + 1/n) sd, widened to the
  effects that were seen. Student's t is taken at `SHAPE` of the error rate, since alone it covers 92 % instead of 95 %
  where some settings are noisier than others, or few have an effect. Together they cover 93 to 97 % with 8 to 24
  settings (analysis/results/calibration.json). Intervals that assume no shape at all need 39 settings for 95 %.
- In how many settings the claim holds, with the exact interval of their share (Clopper and Pearson 1934).
- On which factors of the settings the effect depends: least squares on one factor at a time. The factors of a setting
  are drawn independently, so the effect of another factor is noise here, and few settings suffice.

A table errs in at most 5 % of all cases. Of this rate the claims share the part `CLAIMS` (Holm), the factors the part
`FACTORS` (Holm over all factors and contrasts). The rest is kept back: Student's t errs a little more often than it
says if effects are skewed.

An effect is the difference of two runs, so that its spread is that of the settings and that of luck. The twin of the
baseline shows how much is luck.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from paribus.verdict.rules import CONTRADICTED, EQUIVALENT, REPRODUCED, Relation
from paribus.verdict.statistics import ALPHA, holm, mean_sd, rounded, t_quantile, two_sided

CLAIMS, FACTORS = 0.7, 0.2  # parts of the error rate of a table
SHAPE: Final = 0.8  # of the error rate of a prediction interval
FEWEST: Final = 4  # settings for a regression
AVERAGE, EVERYWHERE = "on average", "nearly everywhere"
_KINDS: Final = {REPRODUCED: "holds", CONTRADICTED: "fails", EQUIVALENT: "makes no difference"}


class Interval(NamedTuple):
    """An interval and its level, such as 0.95."""

    low: float
    high: float
    level: float


def predict(effects: Sequence[float], alpha: float = ALPHA) -> Interval | None:
    """Where the effect in one further setting lies, but for a chance of about alpha; None below two settings and if all
    effects are the same. It holds every effect that was seen.
    """
    if len(effects) < 2:
        return None
    mean, sd = mean_sd(effects)
    if not sd:
        return None
    half = t_quantile(len(effects) - 1, SHAPE * alpha) * sd * math.sqrt(1.0 + 1.0 / len(effects))
    low, high = min(mean - half, *effects), max(mean + half, *effects)
    return Interval(rounded(low), rounded(high), rounded(1.0 - alpha))


class Count(NamedTuple):
    """In how many settings a claim holds, `part` of `whole`, and the 95 % interval of its share of all settings."""

    part: int
    whole: int
    low: float
    high: float


def count_holding(relation: Relation, benefits: Sequence[float], margin: float) -> Count:
    """In how many settings the effect, turned so that up is better, is on the claim's side: for `>` above zero, for
    `> by` above the margin, for `>=` no worse than the margin, for `~` within it.
    """
    from scipy.special import betaincinv

    sides = {
        ">": lambda benefit: benefit > 0.0,
        "> by": lambda benefit: benefit > margin,
        ">=": lambda benefit: benefit > -margin,
        "~": lambda benefit: abs(benefit) < margin,
    }
    part = sum(map(sides[relation], benefits))
    whole, tail = len(benefits), ALPHA / 2.0
    low = float(betaincinv(part, whole - part + 1, tail)) if part else 0.0
    high = float(betaincinv(part + 1, whole - part, 1.0 - tail)) if part < whole else 1.0
    return Count(part, whole, rounded(low), rounded(high))


class Fit(NamedTuple):
    """The effect over the values of one factor. `fitted`: {value: the effect there}, for numbers at the smallest and
    the largest value, else the mean of each value. `p`: of the test that the effect does not depend on it.
    """

    fitted: dict[str, float]
    p: float


def fit_factor(values: Sequence[str], effects: Sequence[float], log: bool | None) -> Fit | None:
    """Least squares of the effect on one factor.

    Args:
        values: of the settings.
        log: whether numbers count by their logarithm; None: the values are names (one-way analysis of variance).

    Returns:
        None if too few settings, a single value, or effects without spread leave nothing to test.
    """
    kinds = list(dict.fromkeys(values))
    if len(values) < FEWEST or len(kinds) < 2 or not mean_sd(effects)[1]:
        return None
    if log is None:
        return _fit_names(kinds, values, effects)
    x = [math.log(float(value)) if log else float(value) for value in values]
    (middle, _), (mean, _) = mean_sd(x), mean_sd(effects)
    spread = math.fsum((each - middle) ** 2 for each in x)
    slope = math.fsum((each - middle) * effect for each, effect in zip(x, effects, strict=True)) / spread
    left = math.fsum((e - mean - slope * (each - middle)) ** 2 for each, e in zip(x, effects, strict=True))
    df = len(values) - 2
    p = two_sided(df, slope / math.sqrt(left / df / spread)) if left > 0.0 else 0.0
    ends = sorted(kinds, key=float)
    places = {end: math.log(float(end)) if log else float(end) for end in (ends[0], ends[-1])}
    return Fit({end: rounded(mean + slope * (place - middle)) for end, place in places.items()}, p)


def _fit_names(kinds: Sequence[str], values: Sequence[str], effects: Sequence[float]) -> Fit | None:
    from scipy.special import fdtrc

    groups = {kind: [e for value, e in zip(values, effects, strict=True) if value == kind] for kind in kinds}
    means = {kind: mean_sd(group)[0] for kind, group in groups.items()}
    grand, df = mean_sd(effects)[0], len(effects) - len(kinds)
    if df < 1:
        return None
    across = math.fsum(len(group) * (means[kind] - grand) ** 2 for kind, group in groups.items()) / (len(kinds) - 1)
    inside = math.fsum((e - means[kind]) ** 2 for kind, group in groups.items() for e in group) / df
    p = float(fdtrc(len(kinds) - 1, df, across / inside)) if inside > 0.0 else 0.0
    return Fit({kind: rounded(mean) for kind, mean in means.items()}, p)


def share_among_factors(p_values: Sequence[float]) -> list[float]:
    """The smallest error rate of the whole table at which each test of a factor decides (Holm)."""
    return [min(1.0, p / FACTORS) for p in holm(p_values)]


def is_everywhere(verdict: str, relation: Relation, low: float, high: float, margin: float) -> bool:
    """Whether a prediction interval of the benefit lies where the verdict does, beyond the margin."""
    if verdict == EQUIVALENT or (verdict == REPRODUCED and relation == "~"):
        return -margin < low and high < margin
    if verdict == REPRODUCED:
        return low > (-margin if relation == ">=" else margin)
    if verdict == CONTRADICTED:
        return {"> by": high < margin, "~": low > margin or high < -margin}.get(relation, high < -margin)
    return False


def choose_words(verdict: str, everywhere: bool, factors: Sequence[str]) -> tuple[str, ...]:
    """What a claim is called: `holds on average` or `holds nearly everywhere`, and the factors that it depends on."""
    words = [f"{_KINDS[verdict]} {EVERYWHERE if everywhere else AVERAGE}"] if verdict in _KINDS else []
    return (*words, *([f"depends on {', '.join(factors)}"] if factors else []))


def is_log(values: Mapping[str, object] | Sequence[str]) -> bool | None:
    """How a list of values counts: numbers above zero by their logarithm, other numbers as they are, names as names."""
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        return None
    return all(number > 0.0 for number in numbers)
