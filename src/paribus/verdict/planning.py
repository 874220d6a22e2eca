"""How many seeds an experiment needs before it is run, by the rules of its verdicts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from paribus.core.errors import UserError
from paribus.verdict.power import MOST_SEEDS, POWER, detectable, power, seeds_needed
from paribus.verdict.statistics import ALPHA
from paribus.verdict.words import Relation, find_routes, judge

SHOWN = (3, 4, 5, 6, 8, 10, 15, 20)  # numbers of seeds whose chances are listed
MOST_ARMS = 1000


class Need(NamedTuple):
    """Of a claim: the verdict that the true effect leads to, and how many seeds decide it with a chance of 80%."""

    relation: Relation
    verdict: str
    seeds: int | None


class Chance(NamedTuple):
    """What n seeds can do: {claim: the chance that it is decided}, and the smallest effect seen with one of 80%."""

    n: int
    chances: dict[str, float]
    detectable: float | None


@dataclass(frozen=True)
class SeedPlan:
    """`arms` of which each but the first has a claim; `level`: the error rate that the claims leave to each."""

    sd: float
    effect: float
    margin: float
    arms: int
    level: float
    needs: tuple[Need, ...]
    chances: tuple[Chance, ...]

    @property
    def seeds(self) -> int | None:
        """What the claim that A is better than B needs; None for more than 1,000."""
        return self.needs[0].seeds

    def __str__(self) -> str:
        claims = (
            ""
            if self.arms == 2
            else f" ({self.arms - 1} claims, {100 * self.level:.3g}% of the error rate of 5% for each)"
        )
        lines = [
            f"If the difference between two arms is {self.effect:g}, with a standard deviation of {self.sd:g} over "
            f"shared seeds{claims}:",
            *(_describe_need(need, self) for need in self.needs),
        ]
        heads = [f"{'seeds':>5}", *(f"{_write(need.relation, self.margin):>28}" for need in self.needs), "detectable"]
        lines += ["", f"Chance of a verdict, and the smallest difference that is detected with a power of {POWER:.0%}:"]
        rows = ([f"{one.n:>5}", *(f"{p:>28.0%}" for p in one.chances.values()), f"{one.detectable or 0:>10.3g}"]
                for one in self.chances)  # fmt: skip
        return "\n".join([*lines, "  ".join(heads), *("  ".join(row) for row in rows)]) + "\n"


def _describe_need(need: Need, plan: SeedPlan) -> str:
    claim = _write(need.relation, plan.margin)
    if need.seeds is None:
        return f"{claim}: more than {MOST_SEEDS} seeds, most likely {need.verdict}"
    return f"{claim}: {need.seeds} seeds per arm ({need.seeds * plan.arms} runs), most likely {need.verdict}"


def _write(relation: str, margin: float) -> str:
    return f"A {relation} B" + (f", margin {margin:g}" if margin else "")


def _expect(relation: Relation, effect: float, margin: float) -> str:
    """The verdict that has the most room: of a `>` claim the sign, unless both margins are farther away than zero."""
    apart = relation == ">" and 2.0 * abs(effect) >= margin
    return judge(relation, effect, effect, 0.0 if apart else margin)


def plan_seeds(sd: float, effect: float, margin: float = 0.0, arms: int = 2) -> SeedPlan:
    """How many seeds decide whether A is better than B, no worse, or the same, if B is `effect` below A in truth.

    By the paired t interval that verdicts are read off.

    Args:
        sd: of the difference between two arms with the same seed, over seeds. If the seeds of two arms share nothing,
            1.41 times that of one arm. In the metric's unit, as effect and margin.
        arms: with more than two, each but the first has a claim, and each claim its share of the error rate, as before
            any of them is decided.

    Raises:
        UserError: for values that no experiment has.
    """
    if not all(map(math.isfinite, (sd, effect, margin))) or sd <= 0.0 or margin < 0.0 or not 2 <= arms <= MOST_ARMS:
        mend = f"give a finite effect, sd above 0, a margin of 0 or more, and 2 to {MOST_ARMS} arms"
        raise UserError(f"sd={sd:g}, effect={effect:g}, margin={margin:g} and {arms} arms are not possible", mend)
    if not effect and not margin:
        raise UserError(
            "there is no difference to detect", "give an effect, or a margin within which the arms count as the same"
        )
    level = ALPHA / (arms - 1)
    relations: tuple[Relation, ...] = (">", ">=", "~") if margin else (">",)
    routes = {relation: find_routes(relation, effect, margin) for relation in relations}
    needs = tuple(
        Need(relation, _expect(relation, effect, margin), seeds_needed(own, sd, level))
        for relation, own in routes.items()
    )
    chances = tuple(
        Chance(n, {relation: power(own, sd, n, level) for relation, own in routes.items()}, detectable(sd, n, level))
        for n in SHOWN
    )
    return SeedPlan(sd, effect, margin, arms, level, needs, chances)
