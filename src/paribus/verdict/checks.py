"""Six checks behind a solid verdict.

A verdict says that a difference is larger than the spread over seeds allows for. It does not say what the difference
comes from. Each check rules out one other explanation of it:

1. `left_early`: both arms left the plateau of a trivial model by half of their tokens. What is compared is then what
   they learned, not the moment at which they began to learn.
2. `exits_alike`: they left it at about the same time, so that neither had much longer to learn after it.
3. `above_scratch`: both arms gain from pre-training, so that the task asks what pre-training gave.
4. `no_collapse`: no fine-tuning ended at chance while others learned. If one arm collapses now and then, an interval
   covers less than it says: with five seeds, of which a fifth ends five standard deviations lower in one arm alone, 95%
   intervals cover the truth in 86% of simulated tables.
5. `inside_grid`: no tuned value is the lowest or highest one tried, beyond which a better one may be.
6. `replicated`: there is more than one checkpoint or text. The spread over fine-tunings of one checkpoint says nothing
   about others.

A verdict that fails one is weak, whatever its interval. One of which a check is not known is not called solid.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from paribus.verdict.metrics import find_metric, lower_is_better, write_value
from paribus.verdict.rules import CONTRADICTED, find_word
from paribus.verdict.statistics import MeanDifference

State = Literal["passes", "fails", "not known", "does not apply"]
Strength = Literal["solid", "weak", "unchecked"]
PASSES: Final = "passes"
FAILS: Final = "fails"
NOT_KNOWN: Final = "not known"
NOT_APPLICABLE: Final = "does not apply"
SOLID: Final = "solid"
WEAK: Final = "weak"
UNCHECKED: Final = "unchecked"
CHECKS: Final = {  # {name: what it asks, for a reader}, in their order
    "left_early": "both arms left the plateau by half of their tokens",
    "exits_alike": "their exits differ by at most a tenth of the budget",
    "above_scratch": "both arms are above the model from scratch",
    "no_collapse": "no fine-tuning is at chance while others are not",
    "inside_grid": "no tuned value is at the edge of its grid",
    "replicated": "there is more than one checkpoint or text",
}
LATEST: Final = 0.5  # of a run's tokens: the plateau is left by then
APART: Final = 0.1  # of the budget: as far may the arms' exits lie from each other
COLLAPSED, LEARNED = 0.01, 0.05  # above the score of a constant answer: nothing learned, something learned
_GRAVITY: Final[tuple[State, ...]] = (FAILS, NOT_KNOWN, PASSES, NOT_APPLICABLE)  # the heaviest first


@dataclass(frozen=True)
class Check:
    """The result of one check of `CHECKS`; `reason`: the numbers that it rests on, or what is missing."""

    name: str
    state: State
    reason: str


class Exit(NamedTuple):
    """When a pre-training left the plateau.

    Attributes:
        share: of the run's tokens; infinite for a run that never left, None if it is not recorded.
        bound: whether the run left before that, in an earlier stage of which the time is not recorded.
        memorized: whether it never left because it memorized its text.
    """

    share: float | None
    bound: bool = False
    memorized: bool = False

    def describe(self, arm: str, seed: int) -> str:
        """In words, of a run whose share is known."""
        assert self.share is not None
        if self.memorized:
            return f"{arm} memorized its text in seed {seed} and never left the plateau"
        if math.isinf(self.share):
            return f"{arm} never left the plateau in seed {seed}"
        return f"{arm} left the plateau at {self.share:.0%} of its tokens in seed {seed}"


@dataclass(frozen=True)
class ArmEvidence:
    """What the records of an arm's finished runs say about the checks of one column.

    Attributes:
        exits: {seed: its exit} of the runs that were pre-trained here.
        scratch: whether the arm is itself a model from scratch.
        gain: the arm less the model from scratch; None if there is no such model.
        above_chance: {task column: by how much each fine-tuning scored above a constant answer}; None if the score of a
            constant answer is not recorded. Both arms have the same columns.
        at_edge: {key: its tuned value} of those beyond which nothing was tried; None if its search is not recorded.
        checkpoints: how many different ones its runs were fine-tuned from.
        texts: how many different texts these were pre-trained on.
    """

    name: str
    exits: Mapping[int, Exit] = field(default_factory=dict)
    scratch: bool = False
    gain: MeanDifference | None = None
    above_chance: Mapping[str, list[float] | None] = field(default_factory=dict)
    at_edge: Mapping[str, str] | None = field(default_factory=dict)
    checkpoints: int = 0
    texts: int = 0


Arms = tuple[ArmEvidence, ...]


def pool_arms(name: str, arms: Sequence[ArmEvidence], gain: MeanDifference | None) -> ArmEvidence:
    """One side of an effect: its arms' mean exit with each seed, and their gain together."""
    exits: dict[int, Exit] = {}
    for seed in sorted(set.intersection(*(set(arm.exits) for arm in arms))):
        each = [arm.exits[seed] for arm in arms]
        shares = [one.share for one in each if one.share is not None]
        share = math.fsum(shares) / len(shares) if len(shares) == len(each) else None
        exits[seed] = Exit(share, any(one.bound for one in each), any(one.memorized for one in each))
    return ArmEvidence(name, exits=exits, scratch=all(arm.scratch for arm in arms), gain=gain)


def run_checks(
    column: str, arms: Arms, *, controlled: bool, tuned: bool, sides: tuple[ArmEvidence, ArmEvidence] | None = None
) -> tuple[Check, ...]:
    """All six, in the order of `CHECKS`.

    Args:
        column: on which the arms are compared; what a run costs does not depend on what it learned.
        sides: of an effect, whose `arms` are all behind it: what is compared.
        controlled: whether the column asks what the arms gain over the model from scratch.
        tuned: whether a search chose values for the arms.
    """
    compared = sides or arms
    learned = [
        check_left_early(arms),
        check_exits_alike(compared),
        check_above_scratch(column, compared) if controlled else _skip("above_scratch", "the column is no task"),
        check_collapse(arms),
    ]
    if find_metric(column).cost:
        learned = [_skip(check.name, "the column is a cost") for check in learned]
    grid = check_grid(arms) if tuned else _skip("inside_grid", "no value was tuned")
    return (*learned, grid, check_replication(arms))


def _skip(name: str, reason: str) -> Check:
    return Check(name, NOT_APPLICABLE, reason)


def check_left_early(arms: Arms) -> Check:
    """Every run of both arms left the plateau by half of its tokens."""
    name = "left_early"
    exits = [(arm.name, seed, each) for arm in arms for seed, each in arm.exits.items()]
    if not exits:
        return _skip(name, "no arm was pre-trained here")
    known = [(each.share, each.describe(arm, seed), each.bound) for arm, seed, each in exits if each.share is not None]
    late = [(share, said) for share, said, bound in known if not bound and _percent(share) > _percent(LATEST)]
    if late:
        several = f" ({len(late)} of {len(exits)} runs had not left it by half)" if len(late) > 1 else ""
        return Check(name, FAILS, f"{max(late, key=lambda one: one[0])[1]}{several}")
    if len(known) < len(exits):
        return Check(name, NOT_KNOWN, "not recorded when runs left the plateau")
    share, said, _ = max(known, key=lambda one: one[0])
    if _percent(share) > _percent(LATEST):
        return Check(name, NOT_KNOWN, _say_bound(exits))
    return Check(name, PASSES, said)


def _say_bound(exits: Sequence[tuple[str, int, Exit]]) -> str:
    arms = dict.fromkeys(arm for arm, _, each in exits if each.bound)
    return f"{' and '.join(arms)} left the plateau in an earlier stage, whose exit is not recorded"


def _percent(share: float) -> float:
    """As it is printed: what reads as half is half."""
    return share if math.isinf(share) else round(100.0 * share)


def check_exits_alike(arms: Arms) -> Check:
    """The mean exits of the arms, over the seeds that they share, differ by at most a tenth of the budget."""
    name = "exits_alike"
    if not all(arm.exits for arm in arms):
        return _skip(name, "not both arms were pre-trained here")
    seeds = sorted(arms[0].exits.keys() & arms[1].exits.keys())
    exits = [(arm.name, seed, arm.exits[seed]) for arm in arms for seed in seeds]
    stuck = [f"{arm} has no exit in seed {seed}" for arm, seed, each in exits if each.share == math.inf]
    if stuck:
        return Check(name, FAILS, stuck[0])
    if not exits or any(each.share is None for _, _, each in exits):
        return Check(name, NOT_KNOWN, "not recorded when runs left the plateau")
    if any(each.bound for _, _, each in exits):
        return Check(name, NOT_KNOWN, _say_bound(exits))
    first, second = (math.fsum(arm.exits[seed].share or 0.0 for seed in seeds) / len(seeds) for arm in arms)
    far = _percent(abs(first - second)) > _percent(APART)
    said = f"exits at {first:.0%} ({arms[0].name}) and {second:.0%} ({arms[1].name}) of the tokens"
    return Check(name, FAILS if far else PASSES, said)


def check_above_scratch(column: str, arms: Arms) -> Check:
    """The 95% interval of each arm's gain over the model from scratch lies above zero.

    An arm that is such a model has nothing to gain.
    """
    name, said, missing = "above_scratch", [], []
    for arm in arms:
        if arm.scratch:
            continue
        ends = (None, None) if arm.gain is None else arm.gain.interval()
        if arm.gain is None or arm.gain.mean is None or ends[0] is None or ends[1] is None:
            missing.append(arm.name)
            continue
        sign = -1.0 if lower_is_better(column) else 1.0
        low, high = sorted(sign * end for end in ends if end is not None)
        gain, *interval = (write_value(column, value) for value in (sign * arm.gain.mean, low, high))
        said.append((low, f"{arm.name} gains {gain} [{', '.join(interval)}] over the model from scratch"))
    if said and min(said)[0] <= 0.0:
        return Check(name, FAILS, min(said)[1])
    if missing:
        return Check(name, NOT_KNOWN, f"no interval of {' and '.join(missing)} over the model from scratch")
    return Check(name, PASSES, min(said)[1]) if said else _skip(name, "both arms are models from scratch")


def check_collapse(arms: Arms) -> Check:
    """No fine-tuning of either arm is at chance on a task on which another one learned something."""
    name = "no_collapse"
    # a column of which one arm has scores, or scores whose chance is not known
    columns = [column for column in arms[0].above_chance if any(arm.above_chance.get(column) != [] for arm in arms)]
    if not columns:
        return _skip(name, "the column has no fine-tunings")
    for column in columns:
        of_arms = [(arm.name, arm.above_chance.get(column) or ()) for arm in arms]
        learned = any(gain >= LEARNED for _, gains in of_arms for gain in gains)
        collapsed = [(arm, sum(gain <= COLLAPSED for gain in gains), len(gains)) for arm, gains in of_arms]
        if learned and any(count for _, count, _ in collapsed):
            said = " and ".join(f"{count} of {n} of {arm}" for arm, count, n in collapsed if count)
            return Check(name, FAILS, f"fine-tunings at chance on {column}: {said}")
    if unknown := [column for column in columns if any(arm.above_chance.get(column) is None for arm in arms)]:
        return Check(name, NOT_KNOWN, f"the score of a constant answer is not recorded for {', '.join(unknown)}")
    count = sum(len(arm.above_chance[column] or ()) for arm in arms for column in columns)
    return Check(name, PASSES, f"none of {count} fine-tunings at chance beside others that learned")


def check_grid(arms: Arms) -> Check:
    """No value that a search chose for an arm is the lowest or highest that it tried."""
    name = "inside_grid"
    at_edge: dict[str, list[str]] = {}
    for arm in arms:
        for key, value in (arm.at_edge or {}).items():
            at_edge.setdefault(f"{key}={value}", []).append(arm.name)
    if at_edge:
        said = "; ".join(f"{value} in {' and '.join(names)}" for value, names in at_edge.items())
        return Check(name, FAILS, f"tuned to the edge of the grid: {said}")
    if missing := [arm.name for arm in arms if arm.at_edge is None]:
        return Check(name, NOT_KNOWN, f"the search for {' and '.join(missing)} is not recorded")
    return Check(name, PASSES, "each tuned value lies between others that were tried")


def check_replication(arms: Arms) -> Check:
    """The arms were fine-tuned from several checkpoints each, or from checkpoints of several texts each."""
    name = "replicated"
    trained = [arm for arm in arms if arm.checkpoints]
    if not trained:
        return _skip(name, "no arm was pre-trained")
    checkpoints, texts = min(arm.checkpoints for arm in trained), min(arm.texts for arm in trained)
    if checkpoints > 1 or texts > 1:
        return Check(name, PASSES, f"{_count(checkpoints, 'checkpoint')}, {_count(texts, 'text')}")
    return Check(name, FAILS, "all runs start from one checkpoint of one text")


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}{'s' * (number != 1)}"


def rate(verdict: str, checks: Sequence[Check]) -> Strength | None:
    """How far a decided verdict can be trusted; None for one that is not decided, or without checks."""
    if not checks or not find_word(verdict).decides:
        return None
    states = {check.state for check in checks}
    return WEAK if FAILS in states else UNCHECKED if NOT_KNOWN in states else SOLID


class Contrasted(NamedTuple):
    """The verdict of a contrast and its checks."""

    verdict: str
    checks: Sequence[Check]


def join_checks(verdict: str, contrasts: Sequence[Contrasted]) -> tuple[Check, ...]:
    """The checks of a claim: of each its heaviest result among the contrasts that its verdict rests on.

    One contradicted contrast contradicts a claim, so that the one with the best checks speaks for it. Any other
    verdict rests on all of them, and so does one that is not decided.
    """
    alone = [one for one in contrasts if one.verdict == CONTRADICTED and one.checks]
    if verdict == CONTRADICTED and alone:
        return tuple(min(alone, key=lambda one: [sum(c.state == s for c in one.checks) for s in _GRAVITY]).checks)
    return tuple(_find_heaviest([one.checks for one in contrasts if one.checks]))


def _find_heaviest(groups: Sequence[Sequence[Check]]) -> Iterator[Check]:
    for of_check in zip(*groups, strict=True):
        yield min(of_check, key=lambda check: _GRAVITY.index(check.state))


def explain(checks: Sequence[Check]) -> str:
    """Why a verdict is weak, or what of it is not known if nothing fails; empty for a solid one."""
    for state in (FAILS, NOT_KNOWN):
        if reasons := list(dict.fromkeys(check.reason for check in checks if check.state == state)):
            return "; ".join(reasons)
    return ""
