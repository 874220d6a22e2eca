"""The truth table:

claim      interval                                   verdict
A > B      -m < low and high < m  (m given)           equivalent: a difference that matters is excluded
A > B      else low > 0                               reproduced
A > B      else high < 0                              contradicted
A > B      else                                       undecided
A >= B     low > -m                                   reproduced: not worse by more than m
A >= B     high < -m                                  contradicted
A >= B     else                                       undecided
A > B by m low > m                                    reproduced: better by more than m
A > B by m high < m                                   contradicted: better by less than m, or worse
A > B by m else                                       undecided
A ~ B      -m < low and high < m                      reproduced: two one-sided tests (Schuirmann 1987)
A ~ B      low > m or high < -m                       contradicted
A ~ B      else                                       undecided
"""

from __future__ import annotations

from paribus.verdict.rules import CONTRADICTED, EQUIVALENT, NOT_RUN, REPRODUCED, UNDECIDED, WORDS, Relation, Word


def _is_inside(low: float, high: float, margin: float) -> bool:
    return -margin < low and high < margin


def _is_reproduced(relation: Relation, low: float, high: float, margin: float) -> bool:
    if relation == ">=":
        return low > -margin
    if relation == "> by":
        return low > margin
    inside = _is_inside(low, high, margin)
    return inside if relation == "~" else low > 0 and not inside


def _is_contradicted(relation: Relation, low: float, high: float, margin: float) -> bool:
    if relation == ">=":
        return high < -margin
    if relation == "> by":
        return high < margin
    if relation == "~":
        return low > margin or high < -margin
    return high < 0 and not _is_inside(low, high, margin)


def _is_equivalent(relation: Relation, low: float, high: float, margin: float) -> bool:
    return relation == ">" and _is_inside(low, high, margin)


WORDS.add(Word(REPRODUCED, 1, _is_reproduced, "circle", "var(--good)", 1))
WORDS.add(Word(CONTRADICTED, 4, _is_contradicted, "cross", "var(--bad)", 2))
WORDS.add(Word(EQUIVALENT, 2, _is_equivalent, "diamond", "var(--same)", 3))
WORDS.add(Word(UNDECIDED, 3, color="var(--open)", rank=4))
WORDS.add(Word(NOT_RUN, 3, rank=5))
