"""Two arms of several seeds each, compared over seeds and examples together (the multibootstrap of MultiBERTs)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from paribus.core.errors import UserError
from paribus.reports.tables.blocks import format_p
from paribus.reports.tables.markdown import render_grid
from paribus.reports.tables.schema import format_n
from paribus.verdict.resampling import multibootstrap, stochastic_order, superiority
from paribus.verdict.statistics import holm, rounded, use_all_runs

Scores = Mapping[str, Mapping[str, float]]  # {seed: {example: its score}}

_HEADER = ("column", "seeds", "examples", "A", "B", "A - B [95%]", "p", "over seeds alone [95%]", "P(A > B)", "order")
_MEANING = (
    "A - B: its interval and p resample seeds and examples together (2,000 times), so they say how the two recipes "
    "differ on examples like these. Over seeds alone: Student's t, as verdicts are read. With few seeds resampling is "
    "too confident (at five, 95% intervals cover about 85%); if both disagree, trust the wider one."
)
_ORDER = (
    "P(A > B): the chance that a run of A has a larger number than one of B. Order: by how much A may fail to be "
    "larger at every quantile, an upper bound; below 0.5 it is called larger (almost stochastic order)."
)


@dataclass(frozen=True)
class ArmsRow:
    """One column of both arms. `difference`: of the means over seeds and examples, with the multibootstrap's interval.

    `seeds`: of both; `shared`: whether they are the same ones, which are then resampled together. `by_seed`: the
    interval over seeds alone.
    """

    column: str
    seeds: tuple[int, int]
    shared: bool
    examples: int
    first: float
    second: float
    difference: float
    ci_low: float
    ci_high: float
    p: float
    by_seed: tuple[float | None, float | None]
    superiority: float | None
    order: float | None
    p_holm: float | None = None


@dataclass(frozen=True)
class ArmComparison:
    """Two arms on the same examples; `str()` is the table for a terminal."""

    first: str
    second: str
    rows: tuple[ArmsRow, ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        header, lines = [*_HEADER, *["p (Holm)"] * (len(self.rows) > 1)], []
        for row in self.rows:
            low, high = row.by_seed
            line = [
                row.column,
                format_n(row.seeds[0], None if row.shared else row.seeds),
                str(row.examples),
                f"{row.first:.4g}",
                f"{row.second:.4g}",
                f"{row.difference:+.4g} [{row.ci_low:+.4g}, {row.ci_high:+.4g}]",
                format_p(row.p),
                "-" if low is None or high is None else f"[{low:+.4g}, {high:+.4g}]",
                "-" if row.superiority is None else f"{row.superiority:.0%}",
                "-" if row.order is None else f"{row.order:.2f}",
                format_p(row.p_holm),
            ]
            lines.append(line[: len(header)])
        names = [f"A: {self.first}", f"B: {self.second}", ""]
        return "\n".join([*names, render_grid(header, lines), "", *(f"- {note}" for note in self.notes)]) + "\n"


def compare_arms(
    first: str, second: str, scores: Mapping[str, tuple[Scores, Scores]], notes: Sequence[str]
) -> ArmComparison:
    """Compare two arms on {column: the scores of both}.

    Raises UserError if an arm has one seed, or if its runs were evaluated on different examples.
    """
    rows = [_compare_column(column, first, second, *both) for column, both in scores.items()]
    adjusted = holm([row.p for row in rows])
    rows = [replace(row, p_holm=rounded(p)) for row, p in zip(rows, adjusted, strict=True)]
    return ArmComparison(first, second, tuple(rows), (*notes, _MEANING, _ORDER))


def _compare_column(column: str, first: str, second: str, one: Scores, other: Scores) -> ArmsRow:
    examples = list(next(iter(one.values())))
    for name, scores in ((first, one), (second, other)):
        if len(scores) < 2:
            raise UserError(f"{name} has one seed, the other arm has several", "give several runs of both, or one each")
        for seed, values in scores.items():
            if values.keys() != set(examples):
                cause = f"{name} has other examples of {column} in seed {seed} than seed {next(iter(one))} of {first}"
                raise UserError(cause, "compare runs that were evaluated on the same examples")
    shared = one.keys() == other.keys()
    seeds = list(one), list(one) if shared else list(other)
    first_SN, second_SN = (
        np.array([[scores[seed][example] for example in examples] for seed in order])
        for scores, order in zip((one, other), seeds, strict=True)
    )
    resampled = multibootstrap(first_SN, second_SN, shared)
    assert resampled is not None
    numbers = {seed: at for at, seed in enumerate(dict.fromkeys([*seeds[0], *seeds[1]]))}
    ours, theirs = (
        {numbers[seed]: float(scores_N.mean()) for seed, scores_N in zip(order, scores_SN, strict=True)}
        for order, scores_SN in zip(seeds, (first_SN, second_SN), strict=True)
    )
    return ArmsRow(
        column=column,
        seeds=(len(one), len(other)),
        shared=shared,
        examples=len(examples),
        first=rounded(float(first_SN.mean())),
        second=rounded(float(second_SN.mean())),
        difference=resampled.difference,
        ci_low=resampled.low,
        ci_high=resampled.high,
        p=resampled.p,
        by_seed=use_all_runs(ours, theirs).interval(),
        superiority=superiority(list(ours.values()), list(theirs.values())),
        order=stochastic_order(list(ours.values()), list(theirs.values())),
    )
