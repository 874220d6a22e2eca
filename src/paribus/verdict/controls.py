"""Controls before any verdict: whether arms learned something, the held-out loss can show it, and budgets are equal.

An arm learned something if its pre-training left the plateau of a trivial model, by its loss on its own noise.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from paribus.verdict.statistics import mean_sd, summarize

CLEARLY_BELOW = 0.1  # nats between the unigram model and the interval of an arm
TOLERANCE = 0.01  # of real budgets
TOO_SMALL = "too small to decide: the arms only compare word frequencies"


def find_plateau(losses: Mapping[str, Sequence[float]], unigrams: Mapping[str, float]) -> str | None:
    """Why the held-out loss decides nothing, or None: the 95% interval of one arm must be more than 0.1 nats below the
    unigram model of its own text.

    Args:
        losses: {arm: its held-out losses, in nats} of the arms compared; with one seed, the loss itself counts.
        unigrams: {arm: the loss of the unigram model}.
    """
    measured = {arm: (mean_sd(values)[0], summarize(values)) for arm, values in losses.items() if values}
    if not measured:
        return "no arm has a loss"
    if not measured.keys() <= unigrams.keys():
        return "the unigram loss on the same masks is not recorded"
    highest = {arm: mean if known.ci_high is None else known.ci_high for arm, (mean, known) in measured.items()}
    if any(unigrams[arm] - high > CLEARLY_BELOW for arm, high in highest.items()):
        return None
    best = max(measured, key=lambda arm: unigrams[arm] - measured[arm][0])
    return f"{TOO_SMALL} (loss of {best} {measured[best][0]:.2f}, unigram {unigrams[best]:.2f} nats)"


def find_unjudged(arms: Sequence[str]) -> str | None:
    """Why a pair decides nothing in any column if these of its arms have runs without the loss on their own noise."""
    return f"not recorded whether runs left the plateau of a trivial model: {', '.join(arms)}" if arms else None


def find_stuck(stuck: Mapping[str, Sequence[bool]]) -> str | None:
    """Why a pair of arms decides nothing in any column, or None: each run of both must have left its plateau.

    Args:
        stuck: {arm: whether each pre-training is on the plateau of a trivial model on its own noise}.
    """
    arms = [f"{arm} ({sum(runs)} of {len(runs)})" for arm, runs in stuck.items() if any(runs)]
    return f"runs still on the plateau of a trivial model: {', '.join(arms)}" if arms else None


def describe_left(shares: Mapping[str, Sequence[float]]) -> str | None:
    """How early runs left their plateau, which says whether the budget suffices, or None if no run did.

    Args:
        shares: {arm: the share of its tokens after which each run that left it did so}.
    """
    spans = []
    for arm, ends in shares.items():
        if ends:
            span = " to ".join(dict.fromkeys(f"{end:.0%}" for end in (min(ends), max(ends))))
            spans.append(f"{arm} after {span} of its tokens")
    return f"left the plateau of a trivial model: {', '.join(spans)}" if spans else None


def find_unmatched(used: Mapping[str, float]) -> str | None:
    """Why runs ({label: real budget}) make no fair table, or None if all are within 1% of each other."""
    if not used:
        return None
    least, most = min(used, key=used.__getitem__), max(used, key=used.__getitem__)
    if used[most] <= used[least] * (1.0 + TOLERANCE):
        return None
    return f"{least} used {used[least]:.6g} and {most} used {used[most]:.6g}"


# A share of the trivial floor. T5 on single tokens creeps to 9% below it within 6 million tokens before its loss breaks
# away, and fine-tunes worse from 5% below than from scratch (28.9 against 34.4 points), from 11% better.
LEFT: Final = 0.1
FALLING: Final = 0.05  # nats lost over the last quarter of the tokens
LAST: Final = 0.25  # of the tokens: the end of a curve


class Point(NamedTuple):
    """The loss on the own noise after a step."""

    step: int
    tokens: int
    loss: float


class Course(NamedTuple):
    """What a curve of losses went through.

    Attributes:
        left: the first point below the floor by more than the share `LEFT` of it, or None. A loss that rises again
            later comes from a run that memorizes its text, not from one on the plateau. If the model writes the text,
            the first point after which all are so far below: the floor is that of the text that is written at the end,
            and an untrained generator's tokens are easy to find.
        share: of the run's tokens, at that point; None if there is none.
        memorized: whether a run that never was so far below ends above its first loss by more than `LEFT` of the floor.
            One that rises, but not so far, has diverged.
        fall: nats lost over the last quarter of the tokens, by a line through its points; None with fewer than three.
    """

    left: Point | None
    share: float | None
    memorized: bool
    fall: float | None

    @property
    def stuck(self) -> bool:
        """Whether the run is still on the plateau: it has learned too little, rather than too much."""
        return self.left is None and not self.memorized

    @property
    def falling(self) -> bool:
        return self.fall is not None and self.fall > FALLING


def read_course(own: Mapping[str, Any]) -> Course:
    """The course of a run, from what its record says of the loss on its own noise."""
    return follow([Point(*each) for each in own["curve"]], own["floor"], is_written(own))


def is_written(own: Mapping[str, Any]) -> bool:
    """Whether the model itself writes tokens into the text that its loss measures, as ELECTRA's generator does."""
    return bool(own.get("written", own.get("head") == "replaced"))  # earlier records: known of ELECTRA's own head


def follow(points: Sequence[Point], floor: float, written: bool = False) -> Course:
    """The course of a curve (one point or more) past the loss of the trivial model, in nats."""
    bound = (1.0 - LEFT) * floor
    above = [at for at, point in enumerate(points) if point.loss >= bound]
    start = above[-1] + 1 if written and above else 0
    left = next((point for point in points[start:] if point.loss < bound), None)
    rise = points[-1].loss - points[0].loss
    last = [point for point in points if point.tokens >= (1.0 - LAST) * points[-1].tokens]
    fall = None
    if len(last) > 2:
        line = statistics.linear_regression([point.tokens for point in last], [point.loss for point in last])
        fall = -line.slope * LAST * points[-1].tokens
    share = left.tokens / points[-1].tokens if left else None
    return Course(left, share, left is None and rise > LEFT * floor and not written, fall)
