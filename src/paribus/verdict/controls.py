"""Controls before any verdict: whether every arm learned something, the held-out loss can show it, and budgets are
equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    measured = {arm: (mean_sd(own)[0], summarize(own)) for arm, own in losses.items() if own}
    if not measured:
        return "no arm has a loss"
    if not measured.keys() <= unigrams.keys():
        return "the unigram loss on the same masks is not recorded"
    highest = {arm: mean if own.ci_high is None else own.ci_high for arm, (mean, own) in measured.items()}
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
    found = [f"{arm} ({sum(runs)} of {len(runs)})" for arm, runs in stuck.items() if any(runs)]
    return f"runs still on the plateau of a trivial model: {', '.join(found)}" if found else None


def describe_left(shares: Mapping[str, Sequence[float]]) -> str | None:
    """How early runs left their plateau, which says whether the budget suffices, or None if no run did.

    Args:
        shares: {arm: the share of its tokens after which each run that left it did so}.
    """
    spans = {arm: dict.fromkeys(f"{end:.0%}" for end in (min(own), max(own))) for arm, own in shares.items() if own}
    ends = ", ".join(f"{arm} after {' to '.join(span)} of its tokens" for arm, span in spans.items())
    return f"left the plateau of a trivial model: {ends}" if ends else None


def find_unmatched(used: Mapping[str, float]) -> str | None:
    """Why runs ({label: real budget}) make no fair table, or None if all are within 1% of each other."""
    if not used:
        return None
    least, most = min(used, key=used.__getitem__), max(used, key=used.__getitem__)
    if used[most] <= used[least] * (1.0 + TOLERANCE):
        return None
    return f"{least} used {used[least]:.6g} and {most} used {used[most]:.6g}"
