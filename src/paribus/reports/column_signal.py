"""What a column sees: what pre-training adds to the score of the baseline, over the noise of one run.

Only the baseline and its model from scratch are read, so that columns can be chosen without looking at any other arm.
The noise has three parts: the seed of the pre-training, the seed of the fine-tuning, and the choice of the evaluation
examples. The last one is the same for all arms of a table, so paired differences do not have most of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import median

from paribus.reports.tables.design import Design
from paribus.reports.tables.evidence import Evidence, gather
from paribus.reports.tables.schema import TUNINGS
from paribus.runs.record import Record
from paribus.sweeps.sweep import SCRATCH
from paribus.verdict.metrics import MEAN, is_task, lower_is_better
from paribus.verdict.statistics import find_components, mean_sd, rounded

MOST_EXAMPLES = 20_000  # that the scores of a task are searched for
FEWEST_SCORES = 5  # different ones that say how many examples there are
CLEAR = 2.0  # standard errors that a score must be above chance


@dataclass(frozen=True)
class ColumnSignal:
    """A column of a study, in the metric's unit.

    `signal`: baseline minus from scratch, positive if pre-training helps. `sd_seeds`: standard deviation of one run
    with one fine-tuning, which is that of `sd_pretraining` and `sd_finetuning` together if both are known; of the mean
    over tasks, fine-tunings are averaged first. `se_evaluation`: standard error of an accuracy over that many
    evaluation `examples`. `ratio`: signal over all of the noise. `at_chance` of `scores` fine-tunings of the baseline
    are not clearly above the most frequent class. `stuck`: how many runs of the baseline are on their plateau, from
    which nothing follows for the column.
    """

    study: str
    scale: str
    column: str
    baseline: float
    scratch: float
    bag_of_words: float | None
    chance: float | None
    signal: float
    sd_seeds: float | None
    sd_pretraining: float | None
    sd_finetuning: float | None
    se_evaluation: float | None
    examples: int | None
    ratio: float | None
    at_chance: int | None
    scores: int
    stuck: int


@dataclass(frozen=True)
class ColumnSummary:
    """A column at a scale: medians, in the metric's unit, over the studies whose baseline has left its plateau.

    `above_words`: in how many of `with_words` studies the baseline beats the bag of words. `at_chance` of `scores`:
    summed over the studies of which it is known.
    """

    column: str
    studies: int
    baseline: float
    scratch: float
    bag_of_words: float | None
    signal: float
    sd_pretraining: float | None
    sd_finetuning: float | None
    se_evaluation: float | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    above_words: int
    with_words: int
    at_chance: int
    scores: int


def measure_columns(design: Design, records: Sequence[Record], replication: str) -> list[ColumnSignal]:
    """The task columns of a study that its baseline and its model from scratch both have.

    `replication`: what the seeds of the table are (see `schema`).
    """
    evidence = gather(design, records)
    columns = [column for column in design.columns if is_task(column) or column == MEAN]
    measured = (_measure(design, evidence, column, replication) for column in columns)
    return [signal for signal in measured if signal is not None]


def _measure(design: Design, evidence: Evidence, column: str, replication: str) -> ColumnSignal | None:
    values, scratch = evidence.values(design.baseline, column), evidence.values(SCRATCH, column)
    if not values or not scratch:
        return None
    mean, sd = mean_sd(list(values.values()))
    floor, _ = mean_sd(list(scratch.values()))
    signal = (floor - mean) if lower_is_better(column) else mean - floor
    # the noise of the seeds, and its parts if fine-tunings were repeated
    nested = evidence.nested(design.baseline, column)
    parts = find_components([list(tunings.values()) for tunings in nested.values()])
    pretraining = finetuning = None
    if parts is not None:
        pretraining, finetuning, sd = parts.sd_between, parts.sd_within, parts.sd(1.0)
    elif replication == TUNINGS:
        finetuning = sd
    # the noise of the evaluation examples, and how many scores are not clearly above chance
    anchors = evidence.anchors(design.baseline, column)
    words, chance = (
        mean_sd(list(anchors[name].values()))[0] if anchors.get(name) else None for name in ("bag_of_words", "majority")
    )
    scores = [score for tunings in nested.values() for score in tunings.values()]
    examples = find_examples(evidence, column)
    error = at_chance = None
    if examples is not None:
        error = math.sqrt(mean * (1.0 - mean) / examples)
        if chance is not None:
            bound = chance + CLEAR * math.sqrt(chance * (1.0 - chance) / examples)
            at_chance = sum(score <= bound for score in scores)
    noise = None if sd is None else math.hypot(sd, error or 0.0)
    return ColumnSignal(
        study=design.study,
        scale=design.scale,
        column=column,
        baseline=rounded(mean),
        scratch=rounded(floor),
        bag_of_words=words,
        chance=chance,
        signal=rounded(signal),
        sd_seeds=_round(sd),
        sd_pretraining=_round(pretraining),
        sd_finetuning=_round(finetuning),
        se_evaluation=_round(error),
        examples=examples,
        ratio=rounded(signal / noise) if noise else None,
        at_chance=at_chance,
        scores=len(scores),
        stuck=sum(course.stuck for course in evidence.courses(design.baseline, values)),
    )


def _round(value: float | None) -> float | None:
    return None if value is None else rounded(value)


def find_examples(evidence: Evidence, column: str) -> int | None:
    """How many examples an accuracy of a task is a share of; None if it is no accuracy or not known.

    Records have the count. Of older ones, it is the smallest number of which every accuracy of the study is a share.
    """
    task, _, metric = column.rpartition("/")
    if metric != "accuracy":
        return None
    runs = [run for arm in evidence.runs for run in evidence.done(arm).values()]
    for run in runs:
        if (counted := (run.task_examples or {}).get(task)) is not None:
            return int(counted["examples"]["validation"])
    scores = (one.metrics.get(metric) for run in runs for one in run.task_runs if one.task == task)
    return find_denominator(score for score in scores if score is not None)


def find_denominator(shares: Iterable[float]) -> int | None:
    """The smallest number of which all shares are a whole count.

    None if it is above `MOST_EXAMPLES`, and below `FEWEST_SCORES` different shares: runs that all collapsed score 1/2.
    """
    different = set(shares)
    if len(different) < FEWEST_SCORES:
        return None
    common = 1
    for share in different:
        near = Fraction(share).limit_denominator(MOST_EXAMPLES)
        common = math.lcm(common, near.denominator)
        if common > MOST_EXAMPLES or abs(float(near) - share) > 1e-9:
            return None
    return common


def summarize_columns(signals: Sequence[ColumnSignal]) -> list[ColumnSummary]:
    """One row for each column, those with the most signal over noise first."""
    left = [signal for signal in signals if not signal.stuck]
    rows = []
    for column in dict.fromkeys(signal.column for signal in left):
        found = [signal for signal in left if signal.column == column]
        ratios = [one.ratio for one in found if one.ratio is not None]
        words = [(one, one.bag_of_words) for one in found if one.bag_of_words is not None]
        turn = -1.0 if lower_is_better(column) else 1.0
        known = [one for one in found if one.at_chance is not None]
        row = ColumnSummary(
            column=column,
            studies=len(found),
            baseline=median(one.baseline for one in found),
            scratch=median(one.scratch for one in found),
            bag_of_words=_take_median(one.bag_of_words for one in found),
            signal=median(one.signal for one in found),
            sd_pretraining=_take_median(one.sd_pretraining for one in found),
            sd_finetuning=_take_median(one.sd_finetuning for one in found),
            se_evaluation=_take_median(one.se_evaluation for one in found),
            ratio=_take_median(ratios),
            ratio_low=min(ratios, default=None),
            ratio_high=max(ratios, default=None),
            above_words=sum(turn * (one.baseline - value) > 0.0 for one, value in words),
            with_words=len(words),
            at_chance=sum(one.at_chance or 0 for one in known),
            scores=sum(one.scores for one in known),
        )
        rows.append(row)
    return sorted(rows, key=lambda row: (row.ratio is None, -(row.ratio or 0.0), row.column))


def _take_median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
