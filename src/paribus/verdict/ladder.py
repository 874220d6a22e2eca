"""The scale ladder: one sweep at several scales, its effects against compute, and whether the verdict holds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from paribus.verdict.metrics import lower_is_better
from paribus.verdict.statistics import rounded

DECIDED = ("reproduced", "equivalent", "contradicted")


class Rung(NamedTuple):
    """A contrast at one scale: the effect is first - second in the metric's unit.

    `flops`: mean of its two arms, None where not recorded.
    """

    scale: str
    flops: float | None
    difference: float
    ci_low: float | None
    ci_high: float | None
    sd: float | None
    n: int
    verdict: str


class Change(NamedTuple):
    """How much the effect differs between the largest and the smallest scale, with a 95 % interval (Welch)."""

    difference: float
    ci_low: float
    ci_high: float


class Ladder(NamedTuple):
    """A contrast over the scales, by compute. `stability`: stable | changes | open, see `stability`."""

    claim: str
    column: str
    arm: str
    relation: str
    versus: str
    margin: float
    lower_is_better: bool
    rungs: tuple[Rung, ...]
    change: Change | None
    stability: str


def ladders(tables: Sequence[Mapping[str, Any]]) -> list[Ladder]:
    """All contrasts of a sweep's tables (table.json, one a scale), in the order of its claims.

    A table that does not have a contrast, or has no number for it, gives it no rung; contrasts without any are left
    out.
    """
    found: dict[tuple[str, ...], list[Rung]] = {}
    margins: dict[tuple[str, ...], float] = {}
    for table in tables:
        for claim in table["claims"]:
            for contrast in claim["contrasts"]:
                key = (claim["text"], *(str(contrast[name]) for name in ("column", "arm", "relation", "versus")))
                margins.setdefault(key, float(contrast["margin"]))
                if contrast["difference"] is not None:
                    found.setdefault(key, []).append(_rung(table, contrast))
    return [
        _ladder(key, margins[key], sorted(rungs, key=lambda rung: rung.flops or 0.0)) for key, rungs in found.items()
    ]


def _ladder(key: tuple[str, ...], margin: float, rungs: Sequence[Rung]) -> Ladder:
    claim, column, arm, relation, versus = key
    verdicts = [rung.verdict for rung in rungs]
    lower = lower_is_better(column)
    change = _change(rungs[0], rungs[-1])
    return Ladder(claim, column, arm, relation, versus, margin, lower, tuple(rungs), change, stability(verdicts))


def _rung(table: Mapping[str, Any], contrast: Mapping[str, Any]) -> Rung:
    spent = [table["budget"]["arms"].get(arm, {}).get("flops") for arm in (contrast["arm"], contrast["versus"])]
    known = [float(flops) for flops in spent if flops is not None]
    flops = rounded(math.fsum(known) / len(known)) if known else None
    numbers = (contrast[name] for name in ("difference", "ci_low", "ci_high", "sd", "n", "verdict"))
    return Rung(str(table["scale"]), flops, *numbers)


def stability(verdicts: Sequence[str]) -> str:
    """Whether verdicts at several scales agree.

    stable: at least two scales decide, and all of them say the same; changes: two of them say different things;
    open: fewer than two decide.
    """
    decided = [verdict for verdict in verdicts if verdict in DECIDED]
    if len(set(decided)) > 1:
        return "changes"
    return "stable" if len(decided) > 1 else "open"


def _change(small: Rung, large: Rung) -> Change | None:
    from scipy.special import stdtrit

    if small.scale == large.scale or not small.sd or not large.sd:
        return None
    parts = [rung.sd**2 / rung.n for rung in (small, large) if rung.sd]
    degrees = sum(parts) ** 2 / (parts[0] ** 2 / (small.n - 1) + parts[1] ** 2 / (large.n - 1))
    half = float(stdtrit(degrees, 0.975)) * math.sqrt(sum(parts))
    moved = large.difference - small.difference
    return Change(rounded(moved), rounded(moved - half), rounded(moved + half))
