"""One pair of arms on one column, and the error rates at which its interval gives each verdict.

A difference proves that its column is sensitive to pre-training, sameness does not (ICH E10, three-arm designs). So a
task's contrast is decided *apart* only if the better arm lies above the same model from scratch, and *alike* only if an
arm gains more over it than the margin (for `>=`, the arm that is compared with). An arm that is a model from scratch
itself has nothing to prove if it is the better one, and gains nothing. These are further conditions at the same level,
so that no error rate can rise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from paribus.verdict.claims import Pair
from paribus.verdict.metrics import lower_is_better
from paribus.verdict.sequential import Looks
from paribus.verdict.statistics import Paired, mean_sd, two_sided
from paribus.verdict.words import CONTRADICTED, REPRODUCED, Route, find_routes

NO_SCRATCH = "no run from scratch shows that the column is sensitive to pre-training"
ONE_SCRATCH = "one seed cannot show that the column is sensitive to pre-training"


@dataclass(frozen=True)
class Contrast:
    """One pair on one column. `margin`: in the metric's unit; `barred`: why the column decides nothing, or None.

    `absent`: why one of the arms could not be run at all, or nothing. `gains`: both arms less the same model from
    scratch, over the seeds that they share with it; None for a column that has no such control, and for an arm that is
    itself the model from scratch of other arms.
    """

    column: str
    pair: Pair
    margin: float
    paired: Paired
    barred: str | None = None
    absent: str = ""
    gains: tuple[Paired | None, Paired | None] | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """The same for all contrasts that are read off the same interval."""
        return self.column, *sorted((self.pair.arm, self.pair.versus))

    @cached_property
    def benefit(self) -> float:
        """The mean difference, turned so that up is better. Only if there are differences."""
        return self._turn(self.paired)

    @cached_property
    def sd(self) -> float | None:
        """Sample standard deviation of the differences; None below two."""
        return mean_sd(self.paired.differences)[1] if self.paired.differences else None

    @property
    def judged(self) -> bool:
        """Whether there is an interval, and a spread to judge by."""
        return bool(self.sd)

    @property
    def routes(self) -> tuple[Route, ...]:
        """The ways in which the interval could decide if the mean difference were the true one."""
        return find_routes(self.pair.relation, self.benefit, self.margin)

    def _turn(self, paired: Paired) -> float:
        mean = mean_sd(paired.differences)[0]
        return -mean if lower_is_better(self.column) else mean

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
        if gain is None or len(gain.differences) < 2 or not mean_sd(gain.differences)[1]:
            return 1.0
        return find_rate(gain, self._turn(gain) - least, looks)

    @property
    def controlled(self) -> bool:
        """Whether an arm shares two seeds or more with the model from scratch."""
        return self._share_seeds(2)

    def _share_seeds(self, least: int) -> bool:
        return any(gain is not None and len(gain.differences) >= least for gain in self.gains or ())

    def explain_control(self, word: str) -> str:
        """What the contrast lacks over the model from scratch, for a verdict that its interval would give."""
        if not self.controlled:
            return ONE_SCRATCH if self._share_seeds(1) else NO_SCRATCH
        better, relation = self.pair.arm if self.benefit > 0.0 else self.pair.versus, self.pair.relation
        if word == CONTRADICTED or (word == REPRODUCED and relation == ">"):
            return f"not sensitive: {better} is not clearly above the model from scratch"
        gainer = self.pair.versus if relation == ">=" else "no arm"
        verb = "is" if gainer == "no arm" else "is not"
        return f"not sensitive: {gainer} {verb} clearly above the model from scratch by more than the margin"


def find_rate(paired: Paired, room: float, looks: Looks | None) -> float:
    """The smallest alpha whose two-sided 1 - alpha interval is less wide than this to either side; 1 for none.

    Args:
        looks: then it is the error rate of all looks together.
    """
    n, (_, sd) = len(paired.differences), mean_sd(paired.differences)
    if room <= 0.0 or not sd:
        return 1.0
    p = two_sided(n, room * math.sqrt(n) / sd)
    return p if looks is None else looks.p(p, n)


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

    def rate(room: float, control: float) -> float:
        return max(find_rate(contrast.paired, room, looks), control)

    first, second, alike = contrast.rate_apart(0, looks), contrast.rate_apart(1, looks), contrast.rate_alike(looks)
    if contrast.pair.relation == ">=":
        return Rates(rate(benefit + margin, alike), rate(-margin - benefit, second), beyond=0.0)
    if contrast.pair.relation == "~":
        return Rates(rate(margin - size, alike), rate(size - margin, first if benefit > 0.0 else second), beyond=0.0)
    up, down = rate(benefit, first), rate(-benefit, second)
    if margin == 0.0:
        return Rates(up, down, beyond=0.0)
    return Rates(up, down, rate(margin - size, alike), rate(size - margin, 0.0))
