"""The truth table: which interval gives which verdict.

An interval [low, high] of the *benefit* of A over B (difference turned so that up is better; for a loss it is B - A)
meets zero and the margin m >= 0, in the metric's own unit:

    claim      interval                                   verdict
    A > B      -m < low and high < m  (m given)           equivalent: a difference that matters is excluded
    A > B      else low > 0                               reproduced
    A > B      else high < 0                              contradicted
    A > B      else                                       undecided
    A >= B     low > -m                                   reproduced: not worse by more than m
    A >= B     high < -m                                  contradicted
    A >= B     else                                       undecided
    A ~ B      -m < low and high < m                      reproduced: two one-sided tests (Schuirmann 1987)
    A ~ B      low > m or high < -m                       contradicted
    A ~ B      else                                       undecided

A margin that is not given is zero; `~` needs one. No run of either arm: not run. One shared seed, differences without
any spread, a column that fails its control: undecided, whatever the numbers.

The interval is two-sided at 95 %, so each one-sided test (non-inferiority, either side of equivalence) is at 2.5 %,
which is stricter than the customary 5 % of equivalence tests: a `~` claim can go wrong in both directions, and at the
margin both together stay at 5 %. The customary test is in table.json beside the verdict (`statistics.tost`).
Over all contrasts of a table that can decide something the level is that of `family.py`, in Holm's manner, and where
seeds were added until the claims were decided that of the look (`sequential.py`).
"""

from __future__ import annotations

from typing import Literal

Relation = Literal[">", ">=", "~"]
Verdict = Literal["reproduced", "equivalent", "undecided", "contradicted", "not run"]


def judge(relation: Relation, low: float, high: float, margin: float) -> Verdict:
    """The verdict of one interval of the benefit: the module's truth table."""
    inside = -margin < low and high < margin
    if relation == ">":
        return "equivalent" if inside else "reproduced" if low > 0 else "contradicted" if high < 0 else "undecided"
    if relation == ">=":
        return "reproduced" if low > -margin else "contradicted" if high < -margin else "undecided"
    beyond = low > margin or high < -margin
    return "reproduced" if inside else "contradicted" if beyond else "undecided"


def boundaries(relation: Relation, mean: float, margin: float) -> tuple[float, ...]:
    """Distances from the mean to the boundaries that its interval must not cross, nearest first.

    The interval decides exactly when its half width stays below the first. Of a `>` claim's two ways to be decided
    (off zero, inside the margins) the one with more room counts.
    """
    size = abs(mean)
    if relation == ">=":
        return (abs(mean + margin),)
    if relation == "~":
        return (margin - size, margin + size) if size < margin else (size - margin,)
    return (margin - size, margin + size) if margin - size > size else (size,)
