"""Does a small verdict predict a large one? The contrasts that were measured at two scales, compared.

Every contrast of a study counts once, at its smallest and its largest scale. Tests of identical arms do not count:
there is nothing to predict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from paribus.reports.effects import measure_in_margins, rank_scale, sign_effect
from paribus.reports.tables.schema import ContrastRow, Table
from paribus.verdict.claims import TWINS
from paribus.verdict.decision_accuracy import (
    EffectPair,
    RankCorrelation,
    SignalToNoise,
    SignShare,
    correlate,
    count_signs,
    measure_signal,
)
from paribus.verdict.metrics import MEAN, is_averaged
from paribus.verdict.published import table as published_table
from paribus.verdict.statistics import rounded

SHARES_ATLAS, TEXT_ATLAS = "signal_noise_decision_accuracy", "datadecide_text"  # published tables of decision accuracy
_SHARE = "decision_accuracy_150m"  # their metric: from 150 million parameters to one billion


@dataclass(frozen=True)
class End:
    """A contrast at one scale, positive if the first arm is better: in the metric's unit and in margins.

    `sd`: of one pair of runs, in the metric's unit. `barred`: undecided for another reason than the number of seeds,
    such as a run still on the plateau. `clear`: its interval excludes 0.
    """

    scale: str
    effect: float
    in_margins: float
    sd: float | None
    n: int
    barred: bool
    clear: bool


@dataclass(frozen=True)
class TwoScales:
    """A contrast at two scales. `other_tasks`: the column is a mean over other tasks at the larger one."""

    study: str
    column: str
    arm: str
    versus: str
    other_tasks: bool
    small: End
    large: End


@dataclass(frozen=True)
class Group:
    """What a group of contrasts has in common; effects are correlated in margins."""

    name: str
    studies: int
    signs: SignShare
    spearman: RankCorrelation


@dataclass(frozen=True)
class ColumnNoise:
    """How often a column keeps the sign of an effect, and how large its effects are over the seeds' spread."""

    column: str
    signs: SignShare
    small: SignalToNoise
    large: SignalToNoise


@dataclass(frozen=True)
class PublishedShare:
    """Published decision accuracies, in percent of pairs: the lowest, the median and the highest of its rows."""

    table: str
    source: str
    rows: int
    low: float
    median: float
    high: float


@dataclass(frozen=True)
class Prediction:
    """Everything that is known of small verdicts and large ones. `groups`: all contrasts, and parts of them."""

    contrasts: tuple[TwoScales, ...]
    groups: tuple[Group, ...]
    columns: tuple[ColumnNoise, ...]
    published: tuple[PublishedShare, ...]


def predict_large(tables: Sequence[Table]) -> Prediction | None:
    """Compare the smallest with the largest scale of every study. None if no contrast was measured at two scales."""
    contrasts = tuple(find_contrasts(tables))
    if not contrasts:
        return None
    clear = [one for one in contrasts if one.large.clear]
    learned = [one for one in contrasts if not one.small.barred and not one.large.barred]
    same = [one for one in contrasts if not one.other_tasks]
    groups = (
        _make_group("all", contrasts),
        _make_group("the interval at the larger scale excludes 0", clear),
        _make_group("nothing but the number of seeds keeps either scale from a verdict", learned),
        _make_group("the same tasks at both scales", same),
    )
    columns = tuple(
        _measure_column(column, [one for one in contrasts if one.column == column])
        for column in sorted({one.column for one in contrasts})
    )
    return Prediction(contrasts, groups, columns, tuple(map(_read_published, (TEXT_ATLAS, SHARES_ATLAS))))


def find_contrasts(tables: Sequence[Table]) -> list[TwoScales]:
    """The contrasts that a study measured at two scales or more, by study, in the order of its claims."""
    measured: dict[tuple[str, str, frozenset[str]], list[tuple[Table, ContrastRow]]] = {}
    for table in sorted(tables, key=lambda one: (one.study, rank_scale(one.scale), one.scale)):
        here: dict[tuple[str, str, frozenset[str]], ContrastRow] = {}
        for claim in table.claims:
            for row in claim.contrasts if claim.whose != TWINS else ():
                if measure_in_margins(row) is not None:
                    here.setdefault((table.study, row.column, frozenset((row.arm, row.versus))), row)
        for key, row in here.items():
            measured.setdefault(key, []).append((table, row))
    found = []
    for (study, column, _), ends in measured.items():
        (first, small), (last, large) = ends[0], ends[-1]
        if first.scale != last.scale:
            apart = column == MEAN and list_averaged(first) != list_averaged(last)
            one, other = _read_end(first.scale, small, small.arm), _read_end(last.scale, large, small.arm)
            found.append(TwoScales(study, column, small.arm, small.versus, apart, one, other))
    return found


def list_averaged(table: Table) -> list[str]:
    """The columns that the column `mean` of a table averages."""
    return [column for column in table.columns if is_averaged(column) and any(column in a.metrics for a in table.arms)]


def _read_end(scale: str, row: ContrastRow, first: str) -> End:
    """A contrast at a scale, turned so that it favors the arm `first` if it is positive."""
    effect, in_margins = sign_effect(row).effect, measure_in_margins(row)
    assert in_margins is not None
    turn = 1.0 if row.arm == first else -1.0
    clear = row.ci_low is not None and row.ci_high is not None and (row.ci_low > 0.0 or row.ci_high < 0.0)
    return End(scale, turn * effect, rounded(turn * in_margins.effect), row.sd, row.n, row.barred, clear)


def _make_group(name: str, contrasts: Sequence[TwoScales]) -> Group:
    pairs = _list_pairs(contrasts)
    studies = len({one.study for one in contrasts})
    return Group(name, studies, count_signs(pairs), correlate(pairs))


def _measure_column(column: str, contrasts: Sequence[TwoScales]) -> ColumnNoise:
    small = measure_signal([(one.small.effect, one.small.sd, one.small.n) for one in contrasts])
    large = measure_signal([(one.large.effect, one.large.sd, one.large.n) for one in contrasts])
    return ColumnNoise(column, count_signs(_list_pairs(contrasts)), small, large)


def _list_pairs(contrasts: Sequence[TwoScales]) -> list[EffectPair]:
    return [EffectPair(one.study, one.small.in_margins, one.large.in_margins) for one in contrasts]


def _read_published(name: str) -> PublishedShare:
    atlas = published_table(name)
    shares = [float(value) for row in atlas.rows if (value := row.values[_SHARE]) is not None]
    return PublishedShare(name, atlas.source, len(shares), min(shares), median(shares), max(shares))
