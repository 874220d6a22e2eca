"""Effects with the sign of their claims, and over the scales of a sweep: whether the verdict holds at each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from paribus.reports.tables.schema import ContrastRow, Table
from paribus.verdict.claims import is_in_nats
from paribus.verdict.metrics import in_points, lower_is_better
from paribus.verdict.rules import find_word
from paribus.verdict.statistics import rounded

SCALES = ("test", "smoke", "cpu", "gpu", "paper")  # of the recipes, small ones first


class SignedEffect(NamedTuple):
    """An effect with its interval, positive if the first arm is better.

    `published`: the paper's effect if it prints the same metric.
    """

    effect: float
    low: float | None
    high: float | None
    published: float | None


def sign_effect(row: ContrastRow) -> SignedEffect:
    """The effect of a contrast in the metric's unit. Raises ValueError if it has no number."""
    if row.difference is None:
        raise ValueError(f"{row.pair} on {row.column} has no number")
    published = row.published
    if not lower_is_better(row.column):
        return SignedEffect(row.difference, row.ci_low, row.ci_high, published)
    low, high = (None if end is None else -end for end in (row.ci_high, row.ci_low))
    return SignedEffect(-row.difference, low, high, None if published is None else -published)


def measure_in_margins(row: ContrastRow) -> SignedEffect | None:
    """The signed effect in margins, or in standard deviations of the seeds' differences if it has no margin.

    None if there is no number, or neither of them.
    """
    unit = row.margin or row.sd
    if row.difference is None or not unit:
        return None
    return SignedEffect(*(None if value is None else value / unit for value in sign_effect(row)))  # type: ignore[arg-type]


def name_unit(column: str) -> str:
    """What a difference on a column is counted in, for a reader: points, nats or nothing."""
    return "points" if in_points(column) else "nats" if is_in_nats(column) else ""


class Rung(NamedTuple):
    """A contrast at one scale: the effect is first - second in the metric's unit.

    `flops`: mean of its two arms, None if it was not recorded; `barred`: see `ContrastRow`.
    """

    scale: str
    flops: float | None
    difference: float
    ci_low: float | None
    ci_high: float | None
    sd: float | None
    n: int
    verdict: str
    barred: bool


class ScaleChange(NamedTuple):
    """How much the effect differs between the largest and the smallest scale, with a 95% interval (Welch).

    There is none if one of the two is barred: an arm that learned nothing has no effect to compare.
    """

    difference: float
    ci_low: float
    ci_high: float


class Ladder(NamedTuple):
    """A contrast over the scales, small ones first.

    `stability`: stable | changes | open, see `rate_stability`; `published`: the paper's own effect.
    """

    claim: str
    column: str
    arm: str
    relation: str
    versus: str
    margin: float
    lower_is_better: bool
    rungs: tuple[Rung, ...]
    change: ScaleChange | None
    stability: str
    published: float | None = None


def build_ladders(tables: Sequence[Table]) -> list[Ladder]:
    """All contrasts of a sweep's tables, one per scale, in the order of its claims.

    A table without the contrast, or without a number for it, adds no rung; contrasts without any rung are left out.
    """
    rungs: dict[tuple[str, str, str, str, str], list[Rung]] = {}
    first: dict[tuple[str, ...], ContrastRow] = {}
    for table in tables:
        for claim in table.claims:
            for row in claim.contrasts:
                key = (claim.text, row.column, row.arm, row.relation, row.versus)
                first.setdefault(key, row)
                if row.difference is not None:
                    spent = [table.budget.arms.get(arm, {}).get("flops") for arm in row.arms]
                    known = [flops for flops in spent if flops is not None]
                    average = rounded(math.fsum(known) / len(known)) if known else None
                    rung = Rung(
                        table.scale, average, row.difference, row.ci_low, row.ci_high, row.sd, row.n,
                        row.verdict, row.barred,
                    )  # fmt: skip
                    rungs.setdefault(key, []).append(rung)
    ladders = []
    for pair, unordered in rungs.items():
        row, ordered = first[pair], sorted(unordered, key=_rank)
        change, stability = _compare_ends(ordered[0], ordered[-1]), rate_stability([rung.verdict for rung in ordered])
        lower = lower_is_better(row.column)
        ladders.append(Ladder(*pair, row.margin, lower, tuple(ordered), change, stability, row.published))
    return ladders


def _rank(rung: Rung) -> tuple[int, float]:
    """A checkpoint that is not pre-trained any further has no FLOPs on record, at whatever scale."""
    return rank_scale(rung.scale), rung.flops or 0.0


def rank_scale(scale: str) -> int:
    """Small scales first, and last those that no recipe has."""
    return SCALES.index(scale) if scale in SCALES else len(SCALES)


def rate_stability(verdicts: Sequence[str]) -> str:
    """Whether verdicts at several scales agree.

    stable: at least two scales decide, and all of them agree; changes: two of them disagree;
    open: fewer than two decide.
    """
    decided = [verdict for verdict in verdicts if find_word(verdict).decides]
    if len(set(decided)) > 1:
        return "changes"
    return "stable" if len(decided) > 1 else "open"


def _compare_ends(small: Rung, large: Rung) -> ScaleChange | None:
    from scipy.special import stdtrit

    if small.scale == large.scale or small.barred or large.barred or not small.sd or not large.sd:
        return None
    parts = [rung.sd**2 / rung.n for rung in (small, large) if rung.sd]
    degrees = sum(parts) ** 2 / (parts[0] ** 2 / (small.n - 1) + parts[1] ** 2 / (large.n - 1))
    half = float(stdtrit(degrees, 0.975)) * math.sqrt(sum(parts))
    moved = large.difference - small.difference
    return ScaleChange(rounded(moved), rounded(moved - half), rounded(moved + half))
