"""How the claims of a table share one error rate.

A claim is one conjunction over its k distinct intervals (a pair on a column). At level a it is reproduced if every
contrast is, each by its interval at 1 - a (an intersection-union test needs no correction: Berger 1982), and
contradicted or equivalent by intervals at 1 - a/k, of which one is enough to contradict. With one-sided p-values its p
is min(2 max p_up, 2 k min p_down). All its false verdicts together stay at a: if the claim does
not hold, it is reproduced at rate a/2 at most, and each of k contrasts is falsely contradicted, or falsely equivalent,
at rate a/(2k) at most (none of them both). In a claim that is not reproduced, the contrasts that are say so by
intervals at 1 - a/k too.

Claims about the same intervals, at least as many as these, are read off the same k intervals at 1 - a/k and share one
place in the family (a false verdict on any of them means that an interval misses its truth).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from paribus.verdict.contrast import Contrast, Rates
from paribus.verdict.statistics import ALPHA, holm


class Deciding(NamedTuple):
    """The smallest levels at which a claim is first decided (`first`) and cannot change any more (`last`)."""

    first: float
    last: float


class Shares(NamedTuple):
    """By what a claim's level is divided: `apart` for contradicted and equivalent, `up` for reproduced.

    `place`: which member of the family it is; None for a claim without a contrast that could decide.
    """

    apart: int
    up: int
    place: int | None


class Family(NamedTuple):
    """`steps`: error rates of the whole table, and by what each of them is divided for one of its members."""

    steps: list[tuple[float, float]]

    def adjust(self, level: float) -> float:
        """The smallest error rate of the whole table at which a claim has this level."""
        return min(1.0, *(max(rate, level * share) for rate, share in self.steps))

    @property
    def level(self) -> float:
        """The common level of the claims at ALPHA."""
        return ALPHA / min(share for rate, share in self.steps if rate <= ALPHA)


def share_out(claims: Sequence[Sequence[Contrast]]) -> list[Shares]:
    """The shares of each claim."""
    intervals = [frozenset(contrast.key for contrast in claim if contrast.judged) for claim in claims]
    counts = Counter(intervals)
    places: dict[object, int] = {}
    shares = []
    for at, of_claim in enumerate(intervals):
        shared = counts[of_claim] > 1 and counts[of_claim] >= len(of_claim)
        place = places.setdefault(of_claim if shared else at, len(places)) if of_claim else None
        shares.append(Shares(len(of_claim), len(of_claim) if shared else 1, place))
    return shares


def find_levels(rates: Sequence[Rates], shares: Shares) -> Deciding:
    """The levels at which a claim is decided, from its contrasts' error rates."""
    k, r = shares.apart, shares.up
    up = max(r * one.up for one in rates)
    down = min(k * one.down for one in rates)
    same = max(k * min(one.up, one.inside) for one in rates)
    settled = max(max(min(r * one.up, k * one.down), k * min(one.inside, one.beyond)) for one in rates)
    refuted = min(k * max(one.down, one.beyond) for one in rates)
    return Deciding(min(1.0, up, down, same), min(1.0, settled, refuted))


def step_down(members: Sequence[Deciding], part: float = 1.0) -> Family:
    """Adjust for the number of members, which have this part of the error rate together. With `first` equal to `last`
    everywhere this is Holm 1979.

    A member may have more than one hypothesis to lose: a `>` claim with a margin is decided off zero or inside
    the margins. Its hypotheses "no difference" and "a difference of the margin or more" cannot both be true, so
    they need no share of the error rate each (Shaffer 1986). But while one of them is open the member can still
    go wrong, so its share must not be handed on: the divisor is the number of members that can still change their
    verdict. Plain Holm, which hands the share on after any decision, lets up to 15% of such tables through (10
    contrasts, true difference zero or at the margin).
    """
    last = [min(1.0, rate / part) for rate in holm([one.last for one in members])]
    through = [0.0, *sorted(last)]  # the error rate at which k of them have said all
    shares = [max(1, len(members) - k) / part for k in range(len(through))]
    return Family(list(zip(through, shares, strict=True)))


def make_family(claims: Sequence[Deciding], shares: Sequence[Shares], part: float = 1.0) -> Family:
    """The family of a table: claims of one place are one member, decided first by any and last by all of them. `part`:
    of the table's error rate, what they share.
    """
    members: dict[int, Deciding] = {}
    for claim, share in zip(claims, shares, strict=True):
        if share.place is not None:
            before = members.get(share.place, claim)
            members[share.place] = Deciding(min(before.first, claim.first), max(before.last, claim.last))
    return step_down(list(members.values()), part)
