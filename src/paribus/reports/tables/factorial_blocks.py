"""The part of a table that a design of several factors adds: its effects."""

from __future__ import annotations

from paribus.reports.tables.blocks import (
    NONE,
    Block,
    CellText,
    format_heading,
    format_interval,
    format_number,
    format_p,
)
from paribus.reports.tables.schema import SETTINGS, EffectRow, FactorialTable, Table
from paribus.verdict.statistics import ALPHA

_READ = (
    "Main effect: the mean of all arms at the level named first less the mean of those at the other. Interaction (a x "
    "b): half the difference between the effects of a at both levels of b. [95% t interval over n {unit} that all arms "
    "have]. p: of the paired t-test against zero; p (Holm): adjusted for all effects on the column. Detectable: the "
    "effect that n would have told from zero with a chance of 80%. Claims on effects have their own intervals below."
)


def make_factorial(table: Table) -> list[Block]:
    """The effects on all columns; none if the arms are no design of several factors."""
    if (factorial := table.factorial) is None or not factorial.effects:
        return []
    shows_aliases = any(row.aliases for row in factorial.effects)
    header = ["column", "effect", "levels", "estimate", "p", "p (Holm)", "detectable", "n"]
    header += ["aliased with"] * shows_aliases
    lines = [_make_line(table, row, shows_aliases) for row in factorial.effects]
    unit = "settings" if table.replication == SETTINGS else "seeds"
    below = [_READ.format(unit=unit), _describe(factorial)]
    return [Block("Effects of the factors", header, lines, below, left=3, last=int(shows_aliases))]


def _make_line(table: Table, row: EffectRow, shows_aliases: bool) -> list[CellText]:
    levels = f"{row.sides[0]} - {row.sides[1]}" if " x " not in row.effect else ""
    estimate = format_number(table, row.column, row.mean, 1, sign=True)
    decided = row.p_holm is not None and row.p_holm < ALPHA
    texts = [
        format_heading(table, row.column),
        row.effect,
        levels,
        estimate + format_interval(table, row.column, row.ci_low, row.ci_high, 1),
        format_p(row.p),
        format_p(row.p_holm),
        NONE if row.detectable is None else format_number(table, row.column, row.detectable, 1),
        str(row.n),
        *([", ".join(row.aliases) or NONE] * shows_aliases),
    ]
    return [CellText(text, best=decided and at == 1) for at, text in enumerate(texts)]


def _describe(factorial: FactorialTable) -> str:
    """The design in a sentence, with its factors and generators; the notes say what is aliased."""
    factors = "; ".join(f"{factor}: {', '.join(levels)}" for factor, levels in factorial.factors.items())
    generators = ", ".join(f"{factor} = {' x '.join(parents)}" for factor, parents in factorial.generators.items())
    return f"{factorial.said}. {factors}." + (f" Generators: {generators}." if generators else "")
