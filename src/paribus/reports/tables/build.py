"""The table as data: records in, the content of table.json out. `build_table` is a pure function."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from paribus.reports.history import describe_history, read_history
from paribus.reports.tables.claims import Reasons, judge_claims
from paribus.reports.tables.curves import average_curves, average_effects, collect_curves, find_column
from paribus.reports.tables.design import Design, make_design
from paribus.reports.tables.evidence import Evidence, average_budgets, gather
from paribus.reports.tables.factorial import estimate_effects
from paribus.reports.tables.facts import find_facts
from paribus.reports.tables.notes import write_notes
from paribus.reports.tables.schema import (
    PRETRAININGS,
    RUNS,
    SETTINGS,
    TUNINGS,
    About,
    Aggregate,
    AnchorRow,
    ArmRow,
    Audit,
    Cell,
    Difference,
    Estimate,
    Level,
    LooksTaken,
    OrderRow,
    OverallRow,
    OwnLoss,
    Paper,
    Printed,
    RunRow,
    Table,
    Tuned,
)
from paribus.reports.tables.universe import judge_settings
from paribus.runs.manifest import find_manifest
from paribus.runs.record import Record
from paribus.runs.store import find_records
from paribus.sweeps.sweep import SCRATCH, Sweep
from paribus.sweeps.tuning import Tuning
from paribus.verdict.controls import is_written
from paribus.verdict.metrics import (
    MEAN,
    in_points,
    is_controlled,
    is_task,
    lower_is_better,
)
from paribus.verdict.published import PublishedTable
from paribus.verdict.resampling import compare_order
from paribus.verdict.statistics import ALPHA, mean_sd, rounded, summarize

ANCHORS = {"majority": "majority class"}  # names of anchor rows that are not simply those of the record
REPORTS = Path("reports")


def build_table(design: Design, records: Sequence[Record]) -> Table:
    """The table of the records of one study at one scale, without its curves.

    Raises UserError if no run is finished, if the arms' real budgets differ by more than 1%, or if a claim or the
    mapping to the paper's table cannot be read.
    """
    found, universe = judge_claims(design, records), None
    design, evidence, reasons, claims = found
    if design.universe is not None:
        claims, universe = judge_settings(found)
    paper, columns, looks, n = design.find_paper(), tuple(reasons), design.looks, len(design.seeds)
    about = {
        column: About(not lower_is_better(column), "points" if in_points(column) else "own", reason is None, reason)
        for column, reason in reasons.items()
    }
    pretrained = PRETRAININGS if evidence.count_pretrained() else TUNINGS
    return Table(
        study=design.study,
        title=design.title,
        scale=design.scale,
        stage=design.stage,
        baseline=design.baseline,
        columns=columns,
        about=about,
        arms=tuple(_make_arm(design, evidence, paper, arm, reasons) for arm in design.arms),
        anchors=tuple(_make_anchors(design, evidence, columns)),
        aggregate=summarize_tasks(design, evidence),
        claims=claims,
        looks=None if looks is None else LooksTaken(looks.first, looks.most, n, rounded(looks.level(ALPHA, n))),
        replication=RUNS if design.foreign else pretrained if universe is None else SETTINGS,
        paper=None if paper is None else _make_paper(design, evidence, paper, columns),
        audit=Audit(tuple(design.varies), **design.audit),
        tuning=design.tuning.to_json(),
        budget=average_budgets(design, evidence),
        notes=write_notes(design, evidence, about, claims),
        sources=() if paper is None else (paper.source,),
        universe=universe,
        factorial=estimate_effects(design, evidence, columns),
    )


def _make_arm(design: Design, evidence: Evidence, paper: PublishedTable | None, arm: str, reasons: Reasons) -> ArmRow:
    versus_baseline = {}
    for column in reasons if arm != design.baseline else ():
        difference = evidence.subtract(arm, design.baseline, column)
        if difference.mean is not None:
            versus_baseline[column] = Difference(
                rounded(difference.mean),
                *difference.interval(),
                p=difference.p,
                n=difference.n,
                pairing=difference.pairing,
                counts=difference.both_counts,
            )
    published: dict[str, Printed] = {}
    row = design.published.get("rows", {}).get(arm)
    if paper is not None and row is not None:
        for metric, value in paper.row(row).values.items():
            if value is not None:
                text = "" if str(value) == str(float(value)) else str(value)
                published[metric] = Printed(float(value), paper.source, text)
    return ArmRow(
        name=arm,
        overrides=tuple(design.arms[arm]),
        n=len(evidence.done(arm)),
        status=_summarize_status(design, evidence, arm),
        metrics={column: _make_cell(values) for column in reasons if (values := evidence.values(arm, column))},
        versus_baseline=versus_baseline,
        best=tuple(c for c in reasons if reasons[c] is None and _is_best(design, evidence, arm, c)),
        published=published,
        runs=tuple(
            RunRow(seed, run.status, run.signature, run.wandb_id, run.error)
            for seed, run in sorted(evidence.runs.get(arm, {}).items())
        ),
        reason=design.absent.get(arm, ""),
        own=_summarize_own_loss(evidence, arm),
    )


def _summarize_status(design: Design, evidence: Evidence, arm: str) -> str:
    """done, failed, diverged, missing, not run, or partial if some seeds are done and others are not."""
    if arm in design.absent:
        return "not run"
    runs = evidence.runs.get(arm, {})
    missing = design.find_missing(arm, [*runs, *evidence.excluded])
    states = {run.status for run in runs.values()} | {"missing" for _ in missing}
    if len(states) == 1:
        return states.pop()
    if "done" in states:
        return "partial"
    return "diverged" if "diverged" in states else "failed" if "failed" in states else "missing"


def _make_cell(values: Mapping[int, float]) -> Cell:
    _, mean, sd, low, high = summarize(list(values.values()))
    assert mean is not None
    return Cell(mean, sd, low, high, tuple(values.values()), tuple(values))


def _is_best(design: Design, evidence: Evidence, arm: str, column: str) -> bool:
    """Whether the 95% interval against every other arm lies on the better side of zero."""
    others = [other for other in design.compared if other != arm and evidence.values(other, column)]
    for other in others:
        difference = evidence.subtract(arm, other, column)
        low, high = difference.interval()
        if low is None or high is None or difference.p is None or evidence.count_diverged(arm, column).part:
            return False
        if not (high < 0.0 if lower_is_better(column) else low > 0.0):
            return False
    return bool(others)


def _summarize_own_loss(evidence: Evidence, arm: str) -> OwnLoss | None:
    """The loss of an arm's pre-trainings on their own noise; None if no run measured it."""
    runs = list(evidence.own_losses(arm).values())
    if not runs:
        return None
    courses = evidence.courses(arm)
    left = [course.left for course in courses if course.left is not None]
    steps, tokens = [point.step for point in left], [point.tokens for point in left]
    falls = [course.fall for course in courses if course.fall is not None]
    return OwnLoss(
        n=len(runs),
        loss=rounded(mean_sd([run["loss"] for run in runs])[0]),
        floor=rounded(mean_sd([run["floor"] for run in runs])[0]),
        left=len(left),
        memorized=sum(course.memorized for course in courses),
        steps=(min(steps), max(steps)) if steps else None,
        tokens=(min(tokens), max(tokens)) if tokens else None,
        fall=rounded(mean_sd(falls)[0]) if falls else None,
        falling=sum(course.falling for course in courses),
        held_out=all(run["held_out"] for run in runs),
        written=all(map(is_written, runs)),
    )


def _make_paper(design: Design, evidence: Evidence, paper: PublishedTable, columns: Sequence[str]) -> Paper:
    """Which of the paper's metrics are printed beside our columns, beside columns that were not run, and on their own.

    Our loss on our text is not comparable with the paper's loss on its text: below the scale that has the paper's text
    too, only the paper's task scores are printed beside ours.
    """
    mapped: Mapping[str, str] = design.published.get("metrics", {})
    alike = {column: metric for column, metric in mapped.items() if is_task(column) or design.scale == "paper"}
    beside = {column: metric for column, metric in alike.items() if column in columns}
    absent = {column: metric for column, metric in alike.items() if column not in columns}
    rows = design.published.get("rows", {})
    return Paper(
        table=paper.id,
        source=paper.source,
        claim=paper.claim,
        setting=paper.setting,
        metrics=tuple(metric.name for metric in paper.metrics),
        beside=beside,
        absent=absent,
        own=tuple(metric.name for metric in paper.metrics if metric.name not in alike.values()),
        rows={arm: paper.row(row).arm for arm, row in rows.items()},
        orders=tuple(compare_orders(design, evidence, paper)),
        flags=(*paper.flags, *(f"{arm}: {flag}" for arm, row in rows.items() for flag in paper.row(row).flags)),
    )


def _make_anchors(design: Design, evidence: Evidence, columns: Sequence[str]) -> list[AnchorRow]:
    """Rows without pre-training: the same model from scratch, then what needs no neural model at all."""
    controlled = [column for column in columns if is_controlled(column)]
    scratch = {column: _make_cell(values) for column in controlled if (values := evidence.values(SCRATCH, column))}
    rows = [AnchorRow("from scratch", len(evidence.done(SCRATCH)), scratch)] if scratch else []
    anchors = {arm: {column: evidence.anchors(arm, column) for column in columns} for arm in design.arms}
    for key in dict.fromkeys(key for arm in anchors for column in columns for key in anchors[arm][column]):
        groups = _group_alike({arm: {c: anchors[arm][c].get(key, {}) for c in columns} for arm in anchors})
        for arms in groups:
            pooled = {c: [v for arm in arms for v in anchors[arm][c].get(key, {}).values()] for c in columns}
            metrics = {column: Level(rounded(mean_sd(values)[0])) for column, values in pooled.items() if values}
            name = ANCHORS.get(key, key.replace("_", " "))
            rows.append(AnchorRow(name if len(groups) == 1 else f"{name} ({', '.join(arms)})", None, metrics))
    return rows


def _group_alike(anchors: Mapping[str, Mapping[str, Mapping[int, float]]]) -> list[list[str]]:
    """The arms of {arm: {column: {seed: value}}}, with those together that have equal values of all seeds they share.
    Arms without a value are left out.
    """
    groups: list[list[str]] = []

    def is_like(arm: str, other: str) -> bool:
        pairs = [(anchors[arm][column], anchors[other][column]) for column in anchors[arm]]
        return all(math.isclose(one[seed], two[seed]) for one, two in pairs for seed in one.keys() & two.keys())

    for arm in anchors:
        if any(anchors[arm].values()):
            group = next((arms for arms in groups if is_like(arm, arms[0])), None)
            groups.append([arm]) if group is None else group.append(arm)
    return groups


def compare_orders(design: Design, evidence: Evidence, paper: PublishedTable) -> list[OrderRow]:
    """Kendall's tau between both orders of the arms, for each column that the sweep maps to a metric of the paper."""
    rows = []
    for column, metric in design.published.get("metrics", {}).items():
        printed = {arm: paper.row(row).values.get(metric) for arm, row in design.published.get("rows", {}).items()}
        numbers = {arm: float(value) for arm, value in printed.items() if value is not None}
        ours = {arm: evidence.values(arm, column) for arm in design.arms}
        if (order := compare_order(ours, numbers)) is not None:
            rows.append(OrderRow(column, metric, order.arms, order.n, order.tau, *(order.interval or (None, None))))
    return rows


def summarize_tasks(design: Design, evidence: Evidence) -> Aggregate | None:
    """Each arm's mean over all tasks, and its paired difference from the baseline's, with t intervals.

    Over the seeds that have all of them; None if fewer than two tasks have scores in points.
    """
    columns = evidence.find_averaged()
    if len({column.rpartition("/")[0] for column in columns}) < 2:
        return None
    rows = []
    for arm in design.arms:
        if values := evidence.values(arm, MEAN):
            _, mean, _, low, high = summarize(list(values.values()))
            assert mean is not None
            difference = None if arm == design.baseline else evidence.subtract(arm, design.baseline, MEAN)
            gain = None
            if difference is not None and difference.mean is not None:
                gain = Estimate(rounded(difference.mean), *difference.interval())
            rows.append(OverallRow(arm, len(values), Estimate(mean, low, high), gain))
    return Aggregate(columns, tuple(rows))


def make_table(sweep: Sweep, scale: str, study: str | None, roots: Sequence[Path]) -> Table:
    """The table of a sweep at a scale from the records below these roots."""
    manifest = find_manifest(roots, study or sweep.study, scale)
    return assemble(make_design(sweep, scale, study, manifest), roots)


def assemble(design: Design, roots: Sequence[Path]) -> Table:
    """The table of the records below these roots; incomplete records are named in its notes."""
    manifest = find_manifest(roots, design.study, design.scale)
    design = design.apply(manifest)
    stored = find_records(design.study, design.scale, roots)
    table, arms = build_table(design, stored.records), tuple(design.arms)
    evidence = gather(design, stored.records)
    alike = stored.records if design.universe is None else ()  # the curves of different settings have no mean
    measured = collect_curves(alike, arms, roots, evidence.find_averaged())
    curves = {
        metric: {arm: of_arm for arm, of_arm in of_metric.items() if not evidence.is_apart(arm, find_column(metric))}
        for metric, of_metric in measured.items()
    }
    return replace(
        table,
        notes=(*_tell_history(design, roots), *table.notes, *(f"Left out: {why}." for why in stored.left_out)),
        tuned=count_trials(design.tuning),
        facts=find_facts(
            arms, stored.records, roots, manifest.overrides if manifest else (), design.universe is not None
        ),
        curves=average_curves(curves, arms) | average_effects(curves, arms, design.baseline),
    )


def _tell_history(design: Design, roots: Sequence[Path]) -> list[str]:
    """What was run and changed before, as the first root that has a history of the study says."""
    return next((lines for root in roots if (lines := describe_history(read_history(root / design.study)))), [])


def count_trials(tuning: Tuning) -> dict[str, Tuned]:
    """{arm: how it was tuned}."""
    return {arm: Tuned(len(tuned.trials), tuned.chosen) for arm, tuned in tuning.arms.items()}
