"""Verdicts: the words that a claim can end with, and which interval gives which word.

An interval [low, high] of the *benefit* of A over B (the difference, turned so that up is better; for a loss it is
B - A) is compared with zero and the margin m >= 0, in the metric's own unit. `common.py` has the truth table. A word is
registered in one place, by a module of this package.

A margin that is not given is zero; `~` needs one, and that of `A > B by m` is m. If neither arm has a run: not run.
With one shared seed, differences without any spread, or a contrast that fails its control (`contrast.py`): undecided,
whatever the numbers.

The interval is two-sided, at 95% if the table has one claim on one column, so each one-sided test (non-inferiority,
either side of equivalence) is at 2.5%, which is stricter than the customary 5% of equivalence tests: a `~` claim can go
wrong in both directions, and at the margin both together stay at 5%. The customary test is in table.json beside the
verdict (`statistics.tost`). `family.py` shares the level out among the claims of a table, in Holm's manner. If seeds
were added until the claims were decided, `sequential.py` shares it out among the looks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from paribus.core.registry import Registry

VERSION = 1  # raised when the same records would get another verdict; a frozen sweep names it

Relation = Literal[">", "> by", ">=", "~"]
Holds = Callable[[Relation, float, float, float], bool]

REPRODUCED = "reproduced"
CONTRADICTED = "contradicted"
EQUIVALENT = "equivalent"
UNDECIDED = "undecided"
NOT_RUN = "not run"


@dataclass(frozen=True)
class Word:
    """A verdict.

    Args:
        weight: a claim takes the word of its heaviest contrast.
        holds: whether the word is said of (relation, low, high, margin); None if no interval gives it.
        mark: its shape on drawings, in `plots.style.MARKS`.
        color: a CSS color.
        rank: words are asked in this order, low first, and listed in it.
    """

    name: str
    weight: int
    holds: Holds | None = None
    mark: str = "square"
    color: str = "var(--idle)"
    rank: int = 0

    @property
    def decides(self) -> bool:
        """Whether the word settles a claim."""
        return self.holds is not None


WORDS: Registry[Word] = Registry("paribus.verdict.rules")


def find_word(verdict: str) -> Word:
    """The word of a verdict; an unregistered word settles nothing."""
    return WORDS.get(verdict) or Word(verdict, 0)


def judge(relation: Relation, low: float, high: float, margin: float) -> str:
    """The verdict on one interval of the benefit."""
    for word in WORDS.all():
        if word.holds is not None and word.holds(relation, low, high, margin):
            return word.name
    return UNDECIDED


class Route(NamedTuple):
    """A way to be decided: the interval crosses no boundary. Distances from the mean to the boundary toward zero
    (`behind`) and to the one away from zero (`ahead`; inf: none).
    """

    behind: float
    ahead: float = math.inf

    @property
    def room(self) -> float:
        """The half width at which the interval would meet a boundary."""
        return min(self)


def find_routes(relation: Relation, mean: float, margin: float) -> tuple[Route, ...]:
    """The ways in which an interval around this mean can be decided; of a `>` claim off zero or inside the margins."""
    size = abs(mean)
    if relation == "> by":
        return (Route(abs(mean - margin)),)
    inside = Route(margin + size, margin - size)
    if relation == ">=":
        return (Route(abs(mean + margin)),)
    if relation == "~":
        return (inside,) if size < margin else (Route(size - margin),)
    return (Route(size), inside) if margin else (Route(size),)
