"""The verdicts on a table's claims: their contrasts at each look, what bars a column, and the paper's effects."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from paribus.core.errors import UserError
from paribus.reports.tables.checks import check_contrast, compare_after_exit
from paribus.reports.tables.design import Design
from paribus.reports.tables.evidence import Evidence, gather, require_equal_budgets
from paribus.reports.tables.schema import (
    ClaimRow,
    ContrastRow,
    Equivalence,
    SideRow,
    Spread,
    describe_strength,
    qualify,
)
from paribus.runs.record import Record
from paribus.sweeps.sweep import SCRATCH
from paribus.verdict.checks import Contrasted, join_checks, rate
from paribus.verdict.claims import Claim, Sentence
from paribus.verdict.contrast import NO_SCRATCH, Contrast, Share
from paribus.verdict.controls import find_plateau, find_stuck, find_unjudged
from paribus.verdict.factorial import ZERO, Side
from paribus.verdict.metrics import (
    MEAN,
    POINT,
    find_incomparable,
    find_metric,
    held_out_columns,
    in_points,
    is_controlled,
    is_task,
    lower_is_better,
)
from paribus.verdict.published import PublishedTable
from paribus.verdict.resampling import ENOUGH, bca, stochastic_order, superiority
from paribus.verdict.rules import find_word
from paribus.verdict.ruling import Outcome, Ruling, rule
from paribus.verdict.sequential import FIRST, Looks
from paribus.verdict.statistics import (
    MeanDifference,
    find_components,
    mean_sd,
    pair_seeds,
    rounded,
    subtract_nested,
    tost,
)
from paribus.verdict.universe import CLAIMS

LINEAR = "bag_of_words"  # the anchor that a decided claim names if no arm reaches it
_PERCENT = 1.5  # a published accuracy above this is printed in percent

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
    if evidence.excluded and not evidence.done(design.baseline):
        cause = f"{design.study} at scale={design.scale}: no setting counts: {next(iter(evidence.excluded.values()))}"
        raise UserError(cause, "train longer, such as with larger values of a budget among universe.factors")
    if not any(evidence.done(arm) for arm in design.arms):
        mend = f"run `paribus run {design.sweep or design.study} scale={design.scale}` first"
        raise UserError(f"no finished run of {design.study} at scale={design.scale}", mend)
    if design.looks is not None and evidence.excluded:  # a look is at the settings that count
        fewer = len(evidence.excluded.keys() & set(design.seeds[: design.looks.first]))
        looks = Looks(max(FIRST, design.looks.first - fewer), max(FIRST, design.looks.most - fewer))
        design = replace(design, looks=looks)
    require_equal_budgets(design, evidence)
    measured = [column for column in design.columns if any(evidence.values(arm, column) for arm in design.arms)]
    reasons = {column: find_bar(design, evidence, column, tuple(design.arms)) for column in measured}
    decisions = _judge_looks(design, evidence, claims, reasons, count_seeds)
    rows = (
        _make_claim(design, evidence, paper, claim, contrasts, outcome)
        for claim, (contrasts, outcome) in zip(claims, decisions, strict=True)
    )
    return Verdicts(design, evidence, reasons, tuple(rows))


def find_bar(
    design: Design, evidence: Evidence, column: str, arms: Sequence[str], seeds: Sequence[int] | None = None
) -> str | None:
    """Why a column decides nothing between these arms over these seeds, or over all of them; or None."""
    if column not in design.themselves and (why := find_incomparable(column, design.varies)):
        return why
    if is_controlled(column):
        return None if evidence.values(SCRATCH, column) else NO_SCRATCH
    loss = held_out_columns().get(column)
    if loss is None or design.foreign or design.universe is not None:  # whose settings are excluded one by one
        return None
    losses = {arm: list(_select(evidence.values(arm, loss), seeds).values()) for arm in arms}
    unigrams = {arm: evidence.anchors(arm, loss).get("unigram", {}) for arm in arms}
    return find_plateau(losses, {arm: mean_sd(list(values.values()))[0] for arm, values in unigrams.items() if values})


def _judge_looks(
    design: Design, evidence: Evidence, claims: Sequence[Claim], reasons: Reasons, count_seeds: bool
) -> list[tuple[list[Contrast], Outcome]]:
    """Each claim's contrasts and verdict at the look that decided it, or else at the last one."""
    looks, most = design.looks, len(design.seeds)
    decisions: dict[int, tuple[list[Contrast], Outcome]] = {}
    for n in (None,) if looks is None else range(min(looks.first, most), most + 1):
        seeds = None if n is None else design.seeds[:n]
        groups = [_make_contrasts(design, evidence, claim, reasons, seeds) for claim in claims]
        outcomes = rule(groups, looks, count_seeds and n in (None, most), 1.0 if design.universe is None else CLAIMS)
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
    with_values = [contrast.column for contrast in contrasts if contrast.difference.mean is not None]
    measured, below = len(set(with_values)), find_below(design, evidence, with_values)
    rows = [
        _make_contrast_row(design, evidence, paper, contrast, ruling)
        for contrast, ruling in zip(contrasts, outcome.rulings, strict=True)
    ]
    checks = join_checks(outcome.verdict, [Contrasted(row.verdict, row.checks) for row in rows])
    strength = rate(outcome.verdict, checks)
    word = qualify(outcome.verdict, measured, asked, below, describe_strength(checks, strength))
    return ClaimRow(
        claim.text,
        outcome.verdict,
        design.name_unit(outcome.describe(design.scale, word)),
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
        checks=checks,
        strength=strength,
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

    def find_gain(column: str, side: Side) -> MeanDifference | None:
        if all(arm in design.references.values() for arm in side.weights):
            return None
        scratch: dict[str, float] = {}  # each arm's share goes to its own model from scratch
        for arm, share in side.weights.items():
            reference = design.references.get(arm, SCRATCH)
            scratch[reference] = scratch.get(reference, 0.0) + share
        gained, of_scratch = (evidence.average_side(weights, column) for weights in (side.weights, scratch))
        return pair_seeds({seed: gained[seed] for seed in gained if seeds is None or seed in seeds}, of_scratch)

    contrasts = []
    columns = design.carrying if claim.columns is None else claim.columns
    for column, pair in product(filter(reasons.__contains__, columns), claim.pairs):
        sides = evidence.find_sides(pair.arm, pair.versus)
        arms = [arm for side in sides for arm in side.weights]
        unjudged = [name for name in arms if name in evidence.unjudged]
        stuck = {name: [course.stuck for course in evidence.courses(name, seeds)] for name in arms}
        bar = find_bar(design, evidence, column, arms, seeds)
        by_runs = design.universe is None  # else the baseline alone is asked, and its settings are left out
        if by_runs and not find_metric(column).cost:
            bar = bar or find_unjudged(unjudged) or find_stuck(stuck)
        absent = [f"{name}: {design.absent[name]}" for name in arms if name in design.absent]
        absent += [f"{name}: measured over other targets" for name in arms if evidence.is_apart(name, column)]
        contrast = Contrast(
            column,
            pair,
            claim.margin(column),
            evidence.subtract(pair.arm, pair.versus, column, seeds),
            bar,
            absent="; ".join(absent),
            gains=(find_gain(column, sides[0]), find_gain(column, sides[1])) if is_controlled(column) else None,
            diverged=(_count_diverged(evidence, sides[0], column), _count_diverged(evidence, sides[1], column)),
            level=claim.level,
            sides=(sides[0].name, sides[1].name) if evidence.factorial is not None and ZERO in pair else None,
        )
        contrasts.append(contrast)
    return contrasts


def _count_diverged(evidence: Evidence, side: Side, column: str) -> Share:
    shares = [evidence.count_diverged(arm, column) for arm in side.weights]
    return Share(sum(share.part for share in shares), sum(share.whole for share in shares))


def _select(values: Mapping[int, float], seeds: Sequence[int] | None) -> Mapping[int, float]:
    return values if seeds is None else {seed: value for seed, value in values.items() if seed in seeds}


def _make_contrast_row(
    design: Design, evidence: Evidence, paper: PublishedTable | None, contrast: Contrast, ruling: Ruling
) -> ContrastRow:
    difference = contrast.difference
    first, second = evidence.find_sides(contrast.pair.arm, contrast.pair.versus)
    test = tost(difference, contrast.margin) if contrast.margin > 0.0 else None
    interval = bca(difference.differences) if len(difference.differences) >= ENOUGH else None
    runs = [
        list(of_side.values()) for of_side in evidence.pair(contrast.pair.arm, contrast.pair.versus, contrast.column)
    ]
    turned = [[-value for value in values] if lower_is_better(contrast.column) else values for values in runs]
    checks = check_contrast(design, evidence, contrast)
    return ContrastRow(
        column=contrast.column,
        arm=contrast.pair.arm,
        relation=contrast.pair.relation,
        versus=contrast.pair.versus,
        margin=rounded(contrast.margin),
        difference=None if difference.mean is None else rounded(difference.mean),
        sd=None if difference.sd is None else rounded(difference.sd),
        ci_low=None if ruling.ends is None else ruling.ends.low,
        ci_high=None if ruling.ends is None else ruling.ends.high,
        level=None if ruling.ends is None else ruling.ends.level,
        p=difference.p,
        p_claim=None if ruling.p_claim is None else rounded(ruling.p_claim),
        p_holm=None if ruling.p_holm is None else rounded(ruling.p_holm),
        n=difference.n,
        verdict=ruling.verdict,
        seeds_needed=ruling.seeds,
        seeds_range=ruling.range,
        detectable=ruling.detectable,
        reason=design.name_unit(ruling.reason),
        published=_find_published_effect(design, paper, contrast),
        equivalence=None if test is None else Equivalence(*test),
        ci_bootstrap=None if interval is None else (interval.low, interval.high),
        components=_split_spread(evidence, contrast),
        pairing=difference.pairing,
        counts=difference.both_counts,
        superiority=superiority(turned[0], turned[1]) if design.foreign else None,
        order=stochastic_order(turned[0], turned[1]) if design.foreign else None,
        checks=checks,
        strength=rate(ruling.verdict, checks),
        after_exit=compare_after_exit(design, evidence, contrast, checks),
        sides=None
        if contrast.sides is None
        else (SideRow(first.name, tuple(first.weights)), SideRow(second.name, tuple(second.weights))),
    )


def _find_published_effect(design: Design, paper: PublishedTable | None, contrast: Contrast) -> float | None:
    """The paper's own difference between the two rows, in the unit of our column; None if it prints none."""
    metric = design.published.get("metrics", {}).get(contrast.column)
    rows = design.published.get("rows", {})
    if paper is None or metric is None or not {contrast.pair.arm, contrast.pair.versus} <= rows.keys():
        return None
    first, second = (paper.row(rows[arm]).values.get(metric) for arm in (contrast.pair.arm, contrast.pair.versus))
    if first is None or second is None:
        return None
    percent = in_points(contrast.column) and max(abs(first), abs(second)) > _PERCENT
    return rounded((first - second) * (POINT if percent else 1.0))


def _split_spread(evidence: Evidence, contrast: Contrast) -> Spread | None:
    """Where the spread of a task's differences comes from: pre-training or fine-tuning."""
    if not is_task(contrast.column) or contrast.sides is not None:
        return None
    first, second = (evidence.nested(arm, contrast.column) for arm in (contrast.pair.arm, contrast.pair.versus))
    components = find_components(subtract_nested(first, second))
    return None if components is None else Spread(*map(rounded, (*components, components.narrower)))
