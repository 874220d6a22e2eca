"""The table as data: records in, the content of table.json out. A pure function."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from paribus.core.errors import UserError
from paribus.reports.tables.compare import compare_orders, find_context, summarize_tasks
from paribus.reports.tables.design import Design
from paribus.reports.tables.evidence import Evidence, average_budgets, gather, require_equal_budgets
from paribus.reports.tables.notes import write_notes
from paribus.reports.tables.schema import (
    PRETRAININGS,
    RUNS,
    TUNINGS,
    About,
    AnchorRow,
    ArmRow,
    Audit,
    Cell,
    ClaimRow,
    ContrastRow,
    Difference,
    Level,
    LooksTaken,
    OwnLoss,
    Paper,
    Printed,
    RunRow,
    Table,
    qualify,
)
from paribus.runs.record import Record
from paribus.sweeps.sweep import SCRATCH
from paribus.verdict.claims import Claim, Sentence
from paribus.verdict.contrast import NO_SCRATCH, Contrast
from paribus.verdict.controls import find_plateau, find_stuck, find_unjudged, is_written
from paribus.verdict.metrics import (
    HELD_OUT,
    MEAN,
    find_incomparable,
    in_points,
    is_controlled,
    is_task,
    lower_is_better,
)
from paribus.verdict.published import PublishedTable
from paribus.verdict.ruling import Outcome, Ruling, rule
from paribus.verdict.statistics import ALPHA, Paired, mean_sd, pair_seeds, rounded, summarize
from paribus.verdict.words import find_word

LINEAR = "bag_of_words"  # the anchor that a decided claim names if no arm reaches it
ANCHORS = {"majority": "majority class"}  # names of anchor rows that are not simply those of the record

Reasons = Mapping[str, str | None]  # {column: why it decides no claim, or None}


class Verdicts(NamedTuple):
    """What was measured, and the verdicts on the claims; `reasons`: of the columns that were measured.

    `design`: with the looks that were taken.
    """

    design: Design
    evidence: Evidence
    reasons: Reasons
    claims: tuple[ClaimRow, ...]


def judge_claims(design: Design, records: Sequence[Record], count_seeds: bool = True) -> Verdicts:
    """The verdicts on a design's claims. Raises UserError as `build_table`.

    count_seeds: whether to say how many seeds would decide an open claim, which takes most of the time.
    """
    claims, paper, evidence = design.parse_claims(), design.find_paper(), gather(design, records)
    with_looks = design.count_looks(evidence.find_seeds(tuple(design.arms)))
    if with_looks is not design:
        design, evidence = with_looks, gather(with_looks, records)
    if not any(evidence.done(arm) for arm in design.arms):
        mend = f"run `paribus run {design.study} scale={design.scale}` first"
        raise UserError(f"no finished run of {design.study} at scale={design.scale}", mend)
    require_equal_budgets(design, evidence)
    measured = [column for column in design.columns if any(evidence.values(arm, column) for arm in design.arms)]
    reasons = {column: find_bar(design, evidence, column, tuple(design.arms)) for column in measured}
    decisions = _judge_looks(design, evidence, claims, reasons, count_seeds)
    rows = (
        _make_claim(design, evidence, paper, claim, contrasts, outcome)
        for claim, (contrasts, outcome) in zip(claims, decisions, strict=True)
    )
    return Verdicts(design, evidence, reasons, tuple(rows))


def build_table(design: Design, records: Sequence[Record]) -> Table:
    """The table of the records of one study at one scale, without its curves.

    Raises UserError if no run is finished, if the arms' real budgets differ by more than 1%, or if a claim or the
    mapping to the paper's table cannot be read.
    """
    design, evidence, reasons, claims = judge_claims(design, records)
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
        baseline=design.baseline,
        columns=columns,
        about=about,
        arms=tuple(_make_arm(design, evidence, paper, arm, reasons) for arm in design.arms),
        anchors=tuple(_make_anchors(design, evidence, columns)),
        aggregate=summarize_tasks(design, evidence),
        claims=claims,
        looks=None if looks is None else LooksTaken(looks.first, looks.most, n, rounded(looks.level(ALPHA, n))),
        replication=RUNS if design.foreign else pretrained,
        paper=None if paper is None else _make_paper(design, evidence, paper, columns),
        audit=Audit(tuple(design.varies), **design.audit),
        tuning=design.tuning.to_json(),
        budget=average_budgets(design, evidence),
        notes=write_notes(design, evidence, about, claims),
        sources=() if paper is None else (paper.source,),
    )


def find_bar(
    design: Design, evidence: Evidence, column: str, arms: Sequence[str], seeds: Sequence[int] | None = None
) -> str | None:
    """Why a column decides nothing between these arms over these seeds, or over all of them; or None."""
    if column not in design.themselves and (why := find_incomparable(column, design.varies)):
        return why
    if is_controlled(column):
        return None if evidence.values(SCRATCH, column) else NO_SCRATCH
    prefix = next((name for name in HELD_OUT if column.startswith(name)), None)
    if prefix is None or design.foreign:
        return None
    losses = {arm: list(_select(evidence.values(arm, f"{prefix}loss"), seeds).values()) for arm in arms}
    unigrams = {arm: evidence.anchors(arm, f"{prefix}loss").get("unigram", {}) for arm in arms}
    return find_plateau(losses, {arm: mean_sd(list(values.values()))[0] for arm, values in unigrams.items() if values})


def _make_arm(design: Design, evidence: Evidence, paper: PublishedTable | None, arm: str, reasons: Reasons) -> ArmRow:
    versus_baseline = {}
    for column in reasons if arm != design.baseline else ():
        paired = pair_seeds(evidence.values(arm, column), evidence.values(design.baseline, column))
        n, mean, _, low, high = paired.summary
        if mean is not None:
            versus_baseline[column] = Difference(mean, low, high, paired.p, n)
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
    states = {run.status for run in runs.values()} | {"missing" for _ in design.find_missing(arm, runs)}
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
    """Whether the paired interval against every other arm lies on the better side of zero."""
    others = [other for other in design.arms if other != arm and evidence.values(other, column)]
    for other in others:
        paired = pair_seeds(evidence.values(arm, column), evidence.values(other, column))
        low, high = paired.summary.ci_low, paired.summary.ci_high
        if low is None or high is None or paired.p is None:
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


def _judge_looks(
    design: Design, evidence: Evidence, claims: Sequence[Claim], reasons: Reasons, count_seeds: bool
) -> list[tuple[list[Contrast], Outcome]]:
    """Each claim's contrasts and verdict at the look that decided it, or else at the last one."""
    looks, most = design.looks, len(design.seeds)
    decisions: dict[int, tuple[list[Contrast], Outcome]] = {}
    for n in (None,) if looks is None else range(min(looks.first, most), most + 1):
        seeds = None if n is None else design.seeds[:n]
        groups = [_make_contrasts(design, evidence, claim, reasons, seeds) for claim in claims]
        outcomes = rule(groups, looks, count_seeds and n in (None, most))
        for at, (group, outcome) in enumerate(zip(groups, outcomes, strict=True)):
            if at in decisions and find_word(decisions[at][1].verdict).decides:
                continue
            early = n is not None and n < most and find_word(outcome.verdict).decides
            decisions[at] = group, replace(outcome, reason=f"at the look after {n} seeds") if early else outcome
    return [decisions[at] for at in range(len(claims))]


def _make_claim(
    design: Design,
    evidence: Evidence,
    paper: PublishedTable | None,
    claim: Claim,
    contrasts: Sequence[Contrast],
    outcome: Outcome,
) -> ClaimRow:
    sentence = design.sentences.get(claim.text, Sentence())
    asked = len(design.carrying if claim.columns is None else claim.columns)
    with_values = [contrast.column for contrast in contrasts if contrast.paired.differences]
    measured, below = len(set(with_values)), find_below(design, evidence, with_values)
    rows = (
        _make_contrast_row(design, evidence, paper, contrast, ruling)
        for contrast, ruling in zip(contrasts, outcome.rulings, strict=True)
    )
    return ClaimRow(
        claim.text,
        outcome.verdict,
        outcome.describe(design.scale, qualify(outcome.verdict, measured, asked, below)),
        outcome.seeds,
        outcome.more,
        tuple(rows),
        says=sentence.says,
        whose=sentence.whose,
        p=None if outcome.p is None else rounded(outcome.p),
        seeds_range=outcome.range,
        measured=measured,
        asked=asked,
        below=below,
    )


def find_below(design: Design, evidence: Evidence, columns: Sequence[str]) -> tuple[str, ...]:
    """The columns in which each arm's linear model beats it; of a mean in which it does not, the tasks averaged."""

    def lead(arm: str, column: str, values: Mapping[int, float]) -> float:
        linear = evidence.anchors(arm, column).get(LINEAR)
        return mean_sd(list(linear.values()))[0] - mean_sd(list(values.values()))[0] if linear else -math.inf

    def is_below(column: str) -> bool:
        leads = [lead(arm, column, values) for arm in design.arms if (values := evidence.values(arm, column))]
        return bool(leads) and not lower_is_better(column) and min(leads) > 0.0

    averaged = evidence.find_averaged() if MEAN in columns and not is_below(MEAN) else ()
    return tuple(column for column in dict.fromkeys([*columns, *averaged]) if is_below(column))


def _make_contrasts(
    design: Design, evidence: Evidence, claim: Claim, reasons: Reasons, seeds: Sequence[int] | None
) -> list[Contrast]:
    """All pairs of a claim on its columns that were measured at this scale; over these seeds, or all of them."""

    def find_gain(column: str, arm: str) -> Paired | None:
        if arm in design.references.values():
            return None
        return _pair(evidence, arm, design.references.get(arm, SCRATCH), column, seeds)

    contrasts = []
    columns = design.carrying if claim.columns is None else claim.columns
    for column, pair in product(filter(reasons.__contains__, columns), claim.pairs):
        arm, versus = pair.arm, pair.versus
        unjudged = [name for name in (arm, versus) if name in evidence.unjudged]
        stuck = {name: [course.stuck for course in evidence.courses(name, seeds)] for name in (arm, versus)}
        bar = find_bar(design, evidence, column, (arm, versus), seeds)
        contrast = Contrast(
            column,
            pair,
            claim.margin(column),
            _pair(evidence, arm, versus, column, seeds),
            bar or find_unjudged(unjudged) or find_stuck(stuck),
            absent="; ".join(f"{name}: {design.absent[name]}" for name in (arm, versus) if name in design.absent),
            gains=(find_gain(column, arm), find_gain(column, versus)) if is_controlled(column) else None,
        )
        contrasts.append(contrast)
    return contrasts


def _pair(evidence: Evidence, arm: str, versus: str, column: str, seeds: Sequence[int] | None) -> Paired:
    return pair_seeds(_select(evidence.values(arm, column), seeds), evidence.values(versus, column))


def _select(values: Mapping[int, float], seeds: Sequence[int] | None) -> Mapping[int, float]:
    return values if seeds is None else {seed: value for seed, value in values.items() if seed in seeds}


def _make_contrast_row(
    design: Design, evidence: Evidence, paper: PublishedTable | None, contrast: Contrast, ruling: Ruling
) -> ContrastRow:
    summary, context = contrast.paired.summary, find_context(design, evidence, paper, contrast)
    return ContrastRow(
        column=contrast.column,
        arm=contrast.pair.arm,
        relation=contrast.pair.relation,
        versus=contrast.pair.versus,
        margin=rounded(contrast.margin),
        difference=summary.mean,
        sd=summary.sd,
        ci_low=None if ruling.ends is None else ruling.ends.low,
        ci_high=None if ruling.ends is None else ruling.ends.high,
        level=None if ruling.ends is None else ruling.ends.level,
        p=contrast.paired.p,
        p_claim=None if ruling.p_claim is None else rounded(ruling.p_claim),
        p_holm=None if ruling.p_holm is None else rounded(ruling.p_holm),
        n=summary.n,
        verdict=ruling.verdict,
        seeds_needed=ruling.seeds,
        seeds_range=ruling.range,
        detectable=ruling.detectable,
        reason=ruling.reason,
        published=context.published,
        equivalence=context.equivalence,
        ci_bootstrap=context.ci_bootstrap,
        components=context.components,
    )
