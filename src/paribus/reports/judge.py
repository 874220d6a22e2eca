"""Tables for runs of another framework, with verdicts and seeds needed, by the same code as for our own.

What no one says about a column is read off its name: whether it is a loss, a rate of errors, or a score.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

from paribus.core.errors import UserError, suggest
from paribus.integrations.foreign_records import ForeignRuns, JudgeOptions, collect_runs, name_arm
from paribus.integrations.source import ForeignSource
from paribus.reports.tables.build import build_table
from paribus.reports.tables.design import Design
from paribus.reports.tables.files import render_files
from paribus.reports.tables.markdown import render_markdown
from paribus.reports.tables.schema import Table
from paribus.sweeps.sweep import UNMATCHED
from paribus.verdict.metrics import MEAN, Metric, declare, is_averaged, metric
from paribus.verdict.statistics import is_number

_DIGITS = 3  # of the range of a column's values that are printed
_WORD = re.compile(r"[fF]1|[A-Z]?[a-z]+|[A-Z]+(?![a-z])")  # `val`, `MSE` and `Loss` of `val_MSELoss`
_QUOTED = re.compile(r"\"([^\"]*)\"|'([^']*)'")  # the name of an arm in a claim


class Kind(Enum):
    """`LOSS`: without an upper end, such as a loss or a time; `RATE`: a share of errors; both are better if lower."""

    LOSS = "loss"
    RATE = "rate"
    SCORE = "score"


# scikit-learn's `neg_log_loss` and the like, whose sign is turned, come before the losses that they end with
_KINDS = re.compile(
    r"\b(?:"
    r"(?P<score>neg (?:log loss|mean|median|root|max|brier).*|acc|accuracy|correct|f1|auc|auroc|precision|recall|bleu"
    r"|rouge|match|free|reduction|improvement|gain|saved)"
    r"|(?P<loss>(?:val|valid|train|test|dev|eval)?loss(?:es)?|ppl|perplexity|nll|neg(?:ative)? log likelihood"
    r"|cross entropy|b?ce|xent|(?:squared?|absolute|percentage) (?:log )?error|r?mse|n?rmse|s?mape|mae|bits|bp[bcd]|kl"
    r"|brier|fid|lpips|distance|regret|cost|forgetting|latency|(?:run|wall)?time|duration|seconds)"
    r"|(?P<rate>err|errs|errors?|[wct]er|eer|[em]ce|fpr|fnr|false|failures?|unknown rate)"
    r")\b"
)


def read_kind(column: str) -> Kind | None:
    """By the last word that tells: `word_error_rate` and `accuracy_loss` are better if lower, `error_free` is not."""
    words = " ".join(word.lower() for word in _WORD.findall(column))
    *_, last = (None, *_KINDS.finditer(words))
    return None if last is None else Kind(last.lastgroup)


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
        seeds=tuple(sorted({record.seed for record in runs.records})),
    )
    with declare(columns):
        table = build_table(design, runs.records)
    guessed = {column: kind for column, kind in columns.items() if _find_given(column, source, options) is None}
    return Judged(replace(table, notes=(*table.notes, *_note_guessed(guessed), *runs.notes)), columns)


def _describe_columns(runs: ForeignRuns, source: ForeignSource, options: JudgeOptions) -> dict[str, Metric]:
    """Of each column: which way is better, whether it is in points, and its decimals.

    Raises UserError for a mean over tasks if no task is a score in points.
    """
    columns = {}
    for column in runs.columns:
        if column != MEAN:
            given = _find_given(column, source, options)
            lower = read_kind(column) in (Kind.LOSS, Kind.RATE) if given is None else given
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
    points = read_kind(column) is not Kind.LOSS and all(0.0 <= value <= 1.0 for value in values)
    spread = (max(values) - min(values)) * (100.0 if points else 1.0) if values else 0.0
    digits = _DIGITS - 1 - math.floor(math.log10(spread)) if spread else _DIGITS
    return Metric(column, lower, points, min(max(digits, int(points)), 6), foreign=True)


def _list_values(runs: ForeignRuns, columns: Sequence[str]) -> list[float]:
    values = (record.metrics.get(column) for record in runs.records for column in columns)
    return [value for value in values if is_number(value)]


def _check_directions(columns: Sequence[str], options: JudgeOptions) -> None:
    """Raises UserError for a name that no column has, for a column that both options name, and for a mean of losses."""
    if MEAN in options.lower:
        raise UserError(f"--lower names {MEAN}, which averages scores that are better if higher", "leave it out")
    known = list(dict.fromkeys(name for column in columns for name in (column, metric(column))))
    for option, names in (("lower", options.lower), ("higher", options.higher)):
        for name in names:
            if name not in known:
                raise UserError(f"--{option} names '{name}', which is not judged", suggest(name, known))
    for column in columns:
        if _names(column, options.lower) and _names(column, options.higher):
            raise UserError(f"--lower and --higher both name {column}", "keep one of them")


def _names(column: str, names: Sequence[str]) -> bool:
    return column in names or metric(column) in names


def _find_given(column: str, source: ForeignSource, options: JudgeOptions) -> bool | None:
    """Whether the user or the source says that lower is better; None if neither says anything."""
    if column == MEAN:
        return False
    if _names(column, options.lower) or _names(column, options.higher):
        return _names(column, options.lower)
    return not source.higher[column] if column in source.higher else None


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
