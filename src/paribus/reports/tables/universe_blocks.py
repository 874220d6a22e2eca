"""The parts of a table that a universe adds: each claim in another setting, the controls, factors and settings."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.reports.tables.blocks import NONE, Block, CellText, format_interval, format_number, format_p
from paribus.reports.tables.schema import SettingsRow, Table, UniverseTable
from paribus.sweeps.universe import BETTER, WORSE
from paribus.verdict.statistics import ALPHA

_IN_ANOTHER = (
    "Mean effect [95% t interval]: first arm minus second, over the settings. A new setting: where the effect in one "
    "further setting of the universe will lie, with 95% confidence. Holds in: settings whose effect is on the claim's "
    "side [95% interval of their share]. An effect is the difference of two runs, so that all of these include luck.",
    "Holds on average: the verdict on the mean. Nearly everywhere: the interval of a new setting, at the level of the "
    "claim, lies beyond the margin too. Depends on: a factor that moves the effect.",
)
_CONTROLS = (
    "The twin is the baseline with other draws: how far luck alone moves an effect. The spread beyond that of "
    "the twin is due to the settings. Seen: the 95% interval holds zero for the twin, and lies on the expected side "
    "of zero for an arm of known effect."
)
_FACTORS = (
    "Effect: fitted at the smallest and the largest value of a number, else the mean at each value. p: that the effect "
    "does not depend on the factor, of one factor at a time. p of the table: adjusted for all factors and contrasts, "
    "which have a fifth of the table's error rate; below 0.05 the claim depends on the factor."
)


def make_universe(table: Table) -> list[Block]:
    """All parts, in reading order; none if the table has no universe."""
    if (universe := table.universe) is None:
        return []
    parts = (
        _make_claims(table, universe),
        _make_controls(table, universe),
        _make_factors(table, universe),
        _make_settings(universe),
    )
    return [block for block in parts if block.lines]


def _make_claims(table: Table, universe: UniverseTable) -> Block:
    lines = [
        [
            CellText(row.column),
            CellText(f"{claim.contrasts[at].arm} {claim.contrasts[at].relation} {claim.contrasts[at].versus}"),
            *_describe_effect(table, row),
            CellText("; ".join(row.words) or NONE),
        ]
        for claim in table.claims
        for at, row in enumerate(universe.claims.get(claim.text, ()))
    ]
    header = ["column", "claim", "mean effect", "a new setting", "holds in", "in words"]
    return Block("In another setting", header, _drop_repeated(lines), list(_IN_ANOTHER), left=2, last=1)


def _drop_repeated(lines: Sequence[list[CellText]]) -> list[list[CellText]]:
    """Claims that share a contrast have one line for it."""
    return [line for at, line in enumerate(lines) if line not in lines[:at]]


def _make_controls(table: Table, universe: UniverseTable) -> Block:
    lines = [
        [
            CellText(row.column),
            CellText(row.pair, arm=row.arm),
            *_describe_effect(table, row, WORSE if row.expected == WORSE else BETTER),
            CellText(NONE if row.sd is None else format_number(table, row.column, row.sd, 1)),
            CellText(f"{row.expected}: {NONE if row.seen is None else 'seen' if row.seen else 'not seen'}"),
        ]
        for row in universe.controls
    ]
    header = ["column", "control", "mean effect", "a new setting", "settings", "sd", "expected"]
    return Block("Controls", header, lines, [_CONTROLS], left=2, last=1)


def _describe_effect(table: Table, row: SettingsRow, side: str = "") -> list[CellText]:
    """Mean, prediction and count of the settings, for a control of those on one side."""
    mean = format_number(table, row.column, row.mean, 1, sign=True)
    low, high = row.prediction or (None, None)
    share = "" if not row.n else f" [{row.share[0]:.0%}, {row.share[1]:.0%}]"
    return [
        CellText(mean + format_interval(table, row.column, row.ci_low, row.ci_high, 1)),
        CellText(format_interval(table, row.column, low, high, 1, space="") or NONE),
        CellText(f"{side} in {row.holds} of {row.n}{share}".removeprefix(" in ")),
    ]


def _make_factors(table: Table, universe: UniverseTable) -> Block:
    rows = {(row.column, row.pair): row for claim in universe.claims.values() for row in claim}
    lines = []
    for row in rows.values():
        for fit in row.factors:
            sized = {
                value: format_number(table, row.column, effect, 1, sign=True) for value, effect in fit.fitted.items()
            }
            fitted = "; ".join(f"{value}: {effect}" for value, effect in sized.items())
            texts = (row.column, row.pair, fit.factor, fitted, format_p(fit.p), format_p(fit.p_table))
            lines.append([CellText(text, best=fit.p_table < ALPHA and text == fit.factor) for text in texts])
    header = ["column", "contrast", "factor", "effect", "p", "p of the table"]
    return Block("What moves the effect", header, lines, [_FACTORS], left=4)


def _make_settings(universe: UniverseTable) -> Block:
    header = ["setting", *universe.factors, "counts"]
    lines = [
        [
            CellText(str(row.number)),
            *(CellText(row.values[factor]) for factor in universe.factors),
            CellText(f"no: {row.excluded}" if row.excluded else "yes"),
        ]
        for row in universe.settings
    ]
    factors = "; ".join(f"{factor} in {_write_values(values)}" for factor, values in universe.factors.items())
    below = [
        f"Drawn once, as a scrambled Sobol sample: {factors}. Setting k is trained with seed k. Whether a setting "
        "counts is decided by the baseline's run alone."
    ]
    return Block("Settings", header, lines, below, last=1)


def _write_values(values: object) -> str:
    return ", ".join(map(str, values)) if isinstance(values, list | tuple) else str(values)
