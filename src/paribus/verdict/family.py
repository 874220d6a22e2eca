"""Holm's step-down over the contrasts of a table, where a contrast may have more than one hypothesis to lose.

A `>` claim with a margin can be decided in two ways, off zero and inside the margins. Its hypotheses "no difference"
and "a difference of the margin or more" cannot both be true, so they need no share of the error rate each (Shaffer
1986); but while one of them stands the contrast can still go wrong, and its share must not be handed on. So the
divisor is the number of contrasts that can still change their verdict. Plain Holm, which hands the share on after any
decision, lets up to 15 % of such tables through (10 contrasts, true difference zero or at the margin).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from paribus.verdict.statistics import ALPHA, holm


class Deciding(NamedTuple):
    """Of one contrast, the smallest levels at which its interval decides (`first`) and says all it can (`last`)."""

    first: float
    last: float


class Family(NamedTuple):
    """adjusted: of each contrast the smallest error rate of the whole table at which it is decided; level: the common
    level of their intervals at ALPHA. A contrast with adjusted > ALPHA is undecided.
    """

    adjusted: list[float]
    level: float


def step_down(contrasts: Sequence[Deciding]) -> Family:
    """Adjust for the number of contrasts. With `first` equal to `last` everywhere this is Holm 1979."""
    through = [0.0, *sorted(holm([one.last for one in contrasts]))]  # the error rate at which k of them have said all
    shares = [max(1, len(contrasts) - k) for k in range(len(through))]
    steps = list(zip(through, shares, strict=True))
    adjusted = [min(1.0, *(max(rate, one.first * share) for rate, share in steps)) for one in contrasts]
    return Family(adjusted, ALPHA / min(share for rate, share in steps if rate <= ALPHA))
