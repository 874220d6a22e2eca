"""One pair of arms on one column, and the error rates at which its interval gives each verdict.

A difference proves that its column is sensitive to pre-training, sameness does not (ICH E10, three-arm designs). So a
task's contrast is decided *apart* only if the better arm lies above the same model from scratch, and *alike* only if an
arm gains more over it than the margin (for `>=`, the arm that is compared with). An arm that is a model from scratch
itself has nothing to prove if it is the better one, and gains nothing. These are further conditions at the same level,
so that no error rate can rise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from paribus.verdict.claims import Pair
from paribus.verdict.metrics import lower_is_better
from paribus.verdict.rules import CONTRADICTED, EQUIVALENT, REPRODUCED, Route, find_routes
from paribus.verdict.sequential import Looks
from paribus.verdict.statistics import ALPHA, MeanDifference

NO_SCRATCH = "no run from scratch shows that the column is sensitive to pre-training"
ONE_SCRATCH = "one seed cannot show that the column is sensitive to pre-training"


class Share(NamedTuple):
    """`part` of `whole` runs."""

    part: int
    whole: int


@dataclass(frozen=True)
class Contrast:
    """One pair on one column. `margin`: in the metric's unit; `barred`: why the column decides nothing, or None.

    `absent`: why one of the arms could not be run at all, or nothing. `gains`: both arms less the same model from
    scratch, over the seeds that they share with it; None for a column that has no such control, and for an arm that is
    itself the model from scratch of other arms. `diverged`: the runs of both arms that have no number because they
    diverged. The interval leaves them out, but a diverged run is worse than every other one: no verdict may put its arm
    above the other or beside it. `level`: the error rate that the claim asks for, if it is stricter than the table's.
    `sides`: of an effect that is compared with zero, what the two groups of arms are called of which it is the
    difference; gains and diverged runs are theirs.
    """

    column: str
    pair: Pair
    margin: float
    difference: MeanDifference
    barred: str | None = None
    absent: str = ""
    gains: tuple[MeanDifference | None, MeanDifference | None] | None = None
    diverged: tuple[Share, Share] = (Share(0, 0), Share(0, 0))
    level: float = ALPHA
    sides: tuple[str, str] | None = None

    @property
    def names(self) -> tuple[str, str]:
        """Of what is compared, for a reader."""
        return self.sides or (self.pair.arm, self.pair.versus)

    @property
    def key(self) -> tuple[str, ...]:
        """The same for all contrasts that are read off the same interval."""
        return self.column, *sorted((self.pair.arm, self.pair.versus))

    @cached_property
    def benefit(self) -> float:
        """The mean difference, turned so that up is better. Only if there are differences."""
        return self._turn(self.difference)

    @property
    def judged(self) -> bool:
        """Whether there is an interval, and a spread to judge by."""
        return bool(self.difference.error)

    @property
    def fewer(self) -> str:
        """The arm with fewer runs."""
        first, second = self.difference.counts
        return self.names[0 if first < second else 1]

    @property
    def routes(self) -> tuple[Route, ...]:
        """The ways in which the interval could decide if the mean difference were the true one."""
        return find_routes(self.pair.relation, self.benefit, self.margin)

    def _turn(self, difference: MeanDifference) -> float:
        assert difference.mean is not None
        return -difference.mean if lower_is_better(self.column) else difference.mean

    def rate_apart(self, better: int, looks: Looks | None) -> float:
        """The smallest error rate at which the first (0) or second (1) arm lies above the model from scratch."""
        is_scratch = self.gains is not None and self.gains[better] is None
        return 0.0 if is_scratch else self._rate_gain(better, 0.0, looks)

    def rate_alike(self, looks: Looks | None) -> float:
        """The smallest error rate at which an arm gains more than the margin over the model from scratch.

        If the claim is `>=`, the arm that is compared with.
        """
        second = self._rate_gain(1, self.margin, looks)
        return second if self.pair.relation == ">=" else min(second, self._rate_gain(0, self.margin, looks))

    def _rate_gain(self, side: int, least: float, looks: Looks | None) -> float:
        if self.gains is None:
            return 0.0
        gain = self.gains[side]
        if gain is None or not gain.error:
            return 1.0
        return find_rate(gain, self._turn(gain) - least, looks)

    @property
    def controlled(self) -> bool:
        """Whether an arm shares two seeds or more with the model from scratch."""
        return self._share_seeds(2)

    def _share_seeds(self, least: int) -> bool:
        return any(gain is not None and gain.n >= least for gain in self.gains or ())

    def explain_control(self, word: str) -> str:
        """What the contrast lacks over the model from scratch, for a verdict that its interval would give."""
        if not self.controlled:
            return ONE_SCRATCH if self._share_seeds(1) else NO_SCRATCH
        better, relation = self.names[0 if self.benefit > 0.0 else 1], self.pair.relation
        is_apart = relation in (">", "> by") if word == REPRODUCED else word == CONTRADICTED and relation != "> by"
        if is_apart:
            return f"not sensitive: {better} is not clearly above the model from scratch"
        gainer = self.names[1] if relation == ">=" else "no arm"
        verb = "is" if gainer == "no arm" else "is not"
        return f"not sensitive: {gainer} {verb} clearly above the model from scratch by more than the margin"

    def explain_diverged(self, word: str) -> str:
        """Why the word is not said: it puts an arm with diverged runs above the other or beside it. Or nothing."""
        sides = {0, 1} if self.pair.relation == "~" or word == EQUIVALENT else {0 if word == REPRODUCED else 1}
        if self.pair.relation == "~" and word == CONTRADICTED:
            sides = {0 if self.benefit > 0.0 else 1}
        worst = "and a diverged run counts as the worst"
        return "; ".join(f"{runs} diverged, {worst}" for runs in self._list_diverged(sides))

    def explain_all_diverged(self) -> str:
        """Which arms have no number because all their runs diverged, or nothing."""
        arms = zip(self.names, self.diverged, strict=True)
        return "; ".join(f"all {runs.part} runs of {arm} diverged" for arm, runs in arms if 0 < runs.part == runs.whole)

    def mention_diverged(self) -> str:
        """Which runs the interval leaves out, or nothing."""
        return "; ".join(f"not counting {runs}, which diverged" for runs in self._list_diverged({0, 1}))

    def _list_diverged(self, sides: set[int]) -> list[str]:
        arms = zip(self.names, self.diverged, strict=True)
        return [
            f"{runs.part} of {runs.whole} runs of {arm}"
            for side, (arm, runs) in enumerate(arms)
            if runs.part and side in sides
        ]


def find_rate(difference: MeanDifference, room: float, looks: Looks | None) -> float:
    """`MeanDifference.find_rate`, or that of all looks together."""
    rate = difference.find_rate(room)
    return rate if looks is None or rate == 1.0 else looks.p(rate, difference.n)


class Rates(NamedTuple):
    """The smallest error rates at which a contrast says each word, its control included; 1 for never.

    up: reproduced; down: contradicted; inside: equivalent; beyond: it can no longer become equivalent.
    """

    up: float = 1.0
    down: float = 1.0
    inside: float = 1.0
    beyond: float = 1.0


def find_rates(contrast: Contrast, looks: Looks | None = None) -> Rates:
    """The rates of one contrast; never for one that is barred or has no spread to judge by."""
    if contrast.barred is not None or not contrast.judged:
        return Rates()
    benefit, margin, size = contrast.benefit, contrast.margin, abs(contrast.benefit)

    def rate(room: float, control: float, word: str = "") -> float:
        if word and contrast.explain_diverged(word):
            return 1.0
        return max(find_rate(contrast.difference, room, looks), control)

    first, second, alike = contrast.rate_apart(0, looks), contrast.rate_apart(1, looks), contrast.rate_alike(looks)
    if contrast.pair.relation == ">=":
        up = rate(benefit + margin, alike, REPRODUCED)
        return Rates(up, rate(-margin - benefit, second, CONTRADICTED), beyond=0.0)
    if contrast.pair.relation == "> by":  # an arm that is hardly better shows no sensitivity
        up = rate(benefit - margin, first, REPRODUCED)
        return Rates(up, rate(margin - benefit, alike, CONTRADICTED), beyond=0.0)
    if contrast.pair.relation == "~":
        apart = first if benefit > 0.0 else second
        return Rates(rate(margin - size, alike, REPRODUCED), rate(size - margin, apart, CONTRADICTED), beyond=0.0)
    up, down = rate(benefit, first, REPRODUCED), rate(-benefit, second, CONTRADICTED)
    if margin == 0.0:
        return Rates(up, down, beyond=0.0)
    return Rates(up, down, rate(margin - size, alike, EQUIVALENT), rate(size - margin, 0.0))
