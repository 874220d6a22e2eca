"""Tables for runs of another framework, with verdicts and seeds needed, by the same code as for our own."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from paribus.core.errors import UserError, suggest
from paribus.integrations.column_kinds import (
    Kind,
    find_given,
    is_lower_better,
    is_share,
    list_names,
    read_kind,
    says_percent,
)
from paribus.integrations.foreign_records import ForeignRuns, JudgeOptions, collect_runs, name_arm
from paribus.integrations.source import ForeignSource
from paribus.reports.tables.build import build_table
from paribus.reports.tables.design import Design
from paribus.reports.tables.files import render_files
from paribus.reports.tables.markdown import render_markdown
from paribus.reports.tables.schema import Table
from paribus.sweeps.sweep import UNMATCHED
from paribus.verdict.metrics import MEAN, Metric, declare, is_averaged
from paribus.verdict.statistics import is_number

_NO_SCORE = 1.5  # a score from 0 to 1 is never above this
_FEW_TIMES = (30.0, 300.0)  # about a hundred times as large, if both arms are somewhat alike
_DIGITS = 3  # of the range of a column's values that are printed
_QUOTED = re.compile(r"\"([^\"]*)\"|'([^']*)'")  # the name of an arm in a claim


@dataclass(frozen=True)
class Judged:
    """A table, and how its columns are read. `str()` is the table for a terminal."""

    table: Table
    columns: Mapping[str, Metric]

    def __str__(self) -> str:
        with declare(self.columns):
            return render_markdown(self.table)

    @cached_property
    def files(self) -> dict[str, bytes]:
        """{file name: content}, as `paribus table` writes them: Markdown, LaTeX, HTML, JSON, CSV and the drawings."""
        with declare(self.columns):
            return render_files(self.table)

    @property
    def verdicts(self) -> dict[str, str]:
        """{claim: its verdict with the reason}."""
        return {claim.text: claim.said for claim in self.table.claims}


def judge(source: ForeignSource, options: JudgeOptions, study: str | None = None) -> Judged:
    """The table of the runs of a source.

    Raises UserError for unknown columns and arms, contradictory directions, a mean over no task, and claims that cannot
    be read.
    """
    named = study or name_arm(source.name) or "runs"
    runs = collect_runs(source, options, named)
    baseline = name_arm(options.baseline)
    if baseline not in runs.arms:
        raise UserError(f"the baseline '{options.baseline}' is not an arm", suggest(baseline, runs.arms))
    if not any(record.arm == baseline for record in runs.records):
        why = [note for note in runs.notes if note.startswith(f"{baseline}/seed")]
        raise UserError(f"no run of the baseline '{options.baseline}' counts", " ".join(why[:3]))
    _check_directions(runs.columns, options)
    columns = _describe_columns(runs, source, options)
    design = Design(
        study=named,
        scale="",
        baseline=baseline,
        columns=runs.columns,
        arms=dict.fromkeys((baseline, *runs.arms), ()),
        matched=UNMATCHED,
        claims=tuple(_QUOTED.sub(lambda quoted: name_arm(quoted[1] or quoted[2]), claim) for claim in options.claims),
        seeds=tuple(sorted({record.seed for record in runs.records})) if runs.shared else (),
    )
    _require_one_unit(runs, columns)
    with declare(columns):
        table = build_table(design, runs.records)
        notes = _note_left_out(design)
    guessed = {
        column: kind
        for column, kind in columns.items()
        if find_given(column, source, options.lower, options.higher) is None
    }
    return Judged(replace(table, notes=(*table.notes, *notes, *_note_guessed(guessed), *runs.notes)), columns)


def _describe_columns(runs: ForeignRuns, source: ForeignSource, options: JudgeOptions) -> dict[str, Metric]:
    """Of each column: which way is better, whether it is in points, and its decimals.

    Raises UserError for a mean over tasks if no task is a score in points.
    """
    columns = {}
    for column in runs.columns:
        if column != MEAN:
            lower = is_lower_better(column, source, options.lower, options.higher)
            columns[column] = _describe(column, lower, _list_values(runs, [column]))
    if MEAN in runs.columns:
        with declare(columns):
            values = _list_values(runs, list(filter(is_averaged, columns)))
        if not values:
            mend = "it averages scores such as TASK/acc that lie between 0 and 1; write 85.2 as 0.852 or 85.2%"
            raise UserError(f"{MEAN} has no column to average", mend)
        columns[MEAN] = _describe(MEAN, False, values)
    return columns


def _describe(column: str, lower: bool, values: Sequence[float]) -> Metric:
    share = read_kind(column) is not Kind.LOSS and all(0.0 <= value <= 1.0 for value in values)
    points = share or says_percent(column)
    spread = (max(values) - min(values)) * (100.0 if points else 1.0) if values else 0.0
    digits = _DIGITS - 1 - math.floor(math.log10(spread)) if spread else _DIGITS
    return Metric(column, lower, points, min(max(digits, int(points)), 6), foreign=True)


def _require_one_unit(runs: ForeignRuns, columns: Mapping[str, Metric]) -> None:
    """Raises UserError for a column that has fractions in one arm and numbers from 0 to 100 in another.

    An accuracy is never above 1.5 in one arm and below 1 in another. Another column may be, but not a hundred times as
    large.
    """
    for column in columns:
        kind = read_kind(column)
        arms: dict[str, list[float]] = {}
        for record in runs.records if kind is not Kind.LOSS else ():
            if is_number(value := record.metrics.get(column)):
                arms.setdefault(record.arm, []).append(value * 100.0 if says_percent(column) else value)
        fractions = {arm: max(values) for arm, values in arms.items() if min(values) >= 0.0 and max(values) <= 1.0}
        percents = {arm: min(values) for arm, values in arms.items() if min(values) > _NO_SCORE}
        for (arm, share), (other, percent) in product(fractions.items(), percents.items()):
            near = share > 0.0 and _FEW_TIMES[0] < percent / share < _FEW_TIMES[1]
            if is_share(column) or near:
                cause = f"{column} is {share:g} in {arm} and {percent:g} in {other}"
                raise UserError(cause, "write it as fractions in all arms, or as percents in all")


def _note_left_out(design: Design) -> list[str]:
    """Claims without `on` that are not about all columns."""
    return [
        f"{claim.text}: not about {', '.join(claim.left)}, which the margin does not fit (`on COLUMN` names columns)."
        for claim in design.parse_claims()
        if claim.left
    ]


def _list_values(runs: ForeignRuns, columns: Sequence[str]) -> list[float]:
    values = (record.metrics.get(column) for record in runs.records for column in columns)
    return [value for value in values if is_number(value)]


def _check_directions(columns: Sequence[str], options: JudgeOptions) -> None:
    """Raises UserError for a name that no column has, for a column that both options name, and for a mean of losses."""
    if MEAN in options.lower:
        raise UserError(f"--lower names {MEAN}, which averages scores that are better if higher", "leave it out")
    known = list(dict.fromkeys(name for column in columns for name in list_names(column)))
    for option, names in (("lower", options.lower), ("higher", options.higher)):
        for name in names:
            if name not in known:
                raise UserError(f"--{option} names '{name}', which is not judged", suggest(name, known))
    for column in columns:
        names = list_names(column)
        if any(name in options.lower for name in names) and any(name in options.higher for name in names):
            raise UserError(f"--lower and --higher both name {column}", "keep one of them")


def _note_guessed(guessed: Mapping[str, Metric]) -> list[str]:
    """Which way is better in the columns of which nobody said it."""
    lower = [column for column, kind in guessed.items() if kind.lower_is_better]
    higher = [column for column in guessed if column not in lower]
    said = [
        f"{way} is better in {', '.join(names)} (--{other} changes it)"
        for way, other, names in (("lower", "higher", lower), ("higher", "lower", higher))
        if names
    ]
    return [f"Guessed from names: {'; '.join(said)}."] if said else []
