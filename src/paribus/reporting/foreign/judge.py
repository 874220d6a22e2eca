"""Tables for runs of another framework, with verdicts and seeds needed, by the same code as for our own."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from paribus.core.errors import UserError, suggest
from paribus.reporting.foreign.runs import Asked, Runs, collect_runs, name_arm
from paribus.reporting.foreign.source import Source
from paribus.reporting.tables.build import build_table
from paribus.reporting.tables.design import Design
from paribus.reporting.tables.files import render_files
from paribus.reporting.tables.markdown import render_markdown
from paribus.reporting.tables.schema import Table
from paribus.sweeps.sweep import UNMATCHED
from paribus.verdict.metrics import Metric, declare, lower_is_better, metric
from paribus.verdict.statistics import is_number

_LOWER = re.compile(r".*(?:^|[^a-z])(?:loss|ppl|err|wer|cer|ter|mse|rmse|mae|nll|bpb|bits_per_byte|fid|latency|time)")
_DIGITS = 3  # of the range of a column's values that are printed


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


def judge(source: Source, asked: Asked, study: str | None = None) -> Judged:
    """The table of the runs of a source.

    Raises UserError for unknown columns and arms, contradictory directions, and claims that cannot be read.
    """
    named = study or name_arm(source.name) or "runs"
    runs = collect_runs(source, asked, named)
    baseline = name_arm(asked.baseline)
    if baseline not in runs.arms:
        raise UserError(f"the baseline '{asked.baseline}' is not an arm", suggest(baseline, runs.arms))
    if not any(record.arm == baseline for record in runs.records):
        why = [note for note in runs.notes if note.startswith(f"{baseline}/seed")]
        raise UserError(f"no run of the baseline '{asked.baseline}' counts", " ".join(why[:3]))
    _check_directions(runs.columns, asked)
    columns = {column: describe_column(column, runs, source, asked) for column in runs.columns}
    design = Design(
        study=named,
        scale="",
        baseline=baseline,
        columns=runs.columns,
        arms=dict.fromkeys((baseline, *runs.arms), ()),
        matched=UNMATCHED,
        claims=tuple(_name_arms(claim) for claim in asked.claims),
        seeds=tuple(sorted({record.seed for record in runs.records})),
    )
    with declare(columns):
        table = build_table(design, runs.records)
    return Judged(replace(table, notes=(*table.notes, *runs.notes)), columns)


def _name_arms(claim: str) -> str:
    """The claim with its quoted arms as the table names them."""
    return re.sub(r"\"([^\"]*)\"|'([^']*)'", lambda found: name_arm(found[1] or found[2]), claim)


def describe_column(column: str, runs: Runs, source: Source, asked: Asked) -> Metric:
    """Which way a column is better, whether it is in points (values from 0 to 1), and its decimals."""
    cells = [value for record in runs.records for value in _list_values(record.metrics, column)]
    lower = _is_lower(column, source, asked)
    points = not lower and all(0.0 <= value <= 1.0 for value in cells)
    spread = (max(cells) - min(cells)) * (100.0 if points else 1.0) if cells else 0.0
    digits = _DIGITS - 1 - math.floor(math.log10(spread)) if spread else _DIGITS
    return Metric(column, lower, points, min(max(digits, int(points)), 6), foreign=True)


def _list_values(metrics: Mapping[str, float | None], column: str) -> Sequence[float]:
    """The values of a run in that column; for the mean over tasks, those of all tasks."""
    found = [metrics[column]] if column in metrics else metrics.values()
    return [value for value in found if is_number(value)]


def _check_directions(columns: Sequence[str], asked: Asked) -> None:
    """Raises UserError for a name of `lower` or `higher` that no column has, and for a column that both name."""
    known = list(dict.fromkeys(name for column in columns for name in (column, metric(column))))
    for option, names in (("lower", asked.lower), ("higher", asked.higher)):
        for name in names:
            if name not in known:
                raise UserError(f"--{option} names '{name}', which is not judged", suggest(name, known))
    for column in columns:
        if _names(column, asked.lower) and _names(column, asked.higher):
            raise UserError(f"--lower and --higher both name {column}", "keep one of them")


def _names(column: str, names: Sequence[str]) -> bool:
    return column in names or metric(column) in names


def _is_lower(column: str, source: Source, asked: Asked) -> bool:
    if _names(column, asked.lower) or _names(column, asked.higher):
        return _names(column, asked.lower)
    if column in source.higher:
        return not source.higher[column]
    return _LOWER.fullmatch(column.lower()) is not None or lower_is_better(column)
