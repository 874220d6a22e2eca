"""Effects with the sign of their claims: up favors the arm that a claim names first."""

from __future__ import annotations

from typing import NamedTuple

from paribus.reports.tables.schema import ContrastRow
from paribus.verdict.claims import is_in_nats
from paribus.verdict.metrics import in_points, lower_is_better


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
