"""What the settings of a universe say about each claim, and about the arms whose effect is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from paribus.reports.tables.claims import Verdicts
from paribus.reports.tables.design import Design
from paribus.reports.tables.evidence import Evidence
from paribus.reports.tables.schema import ClaimRow, ContrastRow, FactorRow, SettingRow, SettingsRow, UniverseTable
from paribus.sweeps.search.space import Dimension, Interval, Range
from paribus.sweeps.universe import BETTER, TWIN, WORSE, Setting
from paribus.verdict.metrics import lower_is_better
from paribus.verdict.rules import CONTRADICTED, Relation
from paribus.verdict.statistics import ALPHA, rounded
from paribus.verdict.universe import (
    EVERYWHERE,
    Fit,
    choose_words,
    count_holding,
    fit_factor,
    is_everywhere,
    is_log,
    predict,
    share_among_factors,
)

NOTHING = "no effect"  # what is expected of the twin

Key = tuple[str, ...]  # column, arm, versus


def judge_settings(found: Verdicts) -> tuple[tuple[ClaimRow, ...], UniverseTable]:
    """(The claims with their words, what they rest on)."""
    design, evidence = found.design, found.evidence
    universe = design.universe
    assert universe is not None
    seeds = {*design.seeds, *evidence.excluded, *(seed for runs in evidence.runs.values() for seed in runs)}
    settings = design.list_settings(seeds)
    contrasts = [row for claim in found.claims for row in claim.contrasts if found.reasons[row.column] is None]
    factors = _fit_factors(design, evidence, contrasts, settings)
    claims, of_claims = [], {}
    for claim in found.claims:
        rows = [_summarize(evidence, contrast, factors) for contrast in claim.contrasts]
        claims.append(replace(claim, words=_join_words(claim, rows)))
        of_claims[claim.text] = tuple(row for row in rows if row is not None)
    columns = [column for column, reason in found.reasons.items() if reason is None]
    directions = {TWIN: NOTHING, **universe.known}
    controls = (
        _summarize_control(evidence, column, arm, design.baseline, expected)
        for arm, expected in directions.items()
        for column in columns
    )
    rows_of_settings = (
        SettingRow(number, dict(setting), evidence.excluded.get(number, "")) for number, setting in settings.items()
    )
    made = UniverseTable(
        dict(universe.texts), tuple(rows_of_settings), of_claims, tuple(row for row in controls if row is not None)
    )
    return tuple(claims), made


def list_effects(evidence: Evidence, column: str, arm: str, versus: str) -> dict[int, float]:
    """{number of a setting: arm minus versus} of the settings that both have."""
    first, second = evidence.pair(arm, versus, column)
    return {seed: first[seed] - second[seed] for seed in first if seed in second}


def _fit_factors(
    design: Design, evidence: Evidence, contrasts: Sequence[ContrastRow], settings: dict[int, Setting]
) -> dict[Key, tuple[FactorRow, ...]]:
    """Each pair on each column over each factor. Pairs in both directions are tested once."""
    assert design.universe is not None
    fits: dict[Key, dict[str, Fit]] = {}
    tests: dict[Key, float] = {}  # {(column, both arms by name, factor): p}
    for column, arm, versus in dict.fromkeys((row.column, row.arm, row.versus) for row in contrasts):
        effects = list_effects(evidence, column, arm, versus)
        for factor, dimension in design.universe.factors.items():
            values = [settings[seed][factor] for seed in effects]
            fit = fit_factor(values, list(effects.values()), _counts_by_log(dimension))
            if fit is not None:
                fits.setdefault((column, arm, versus), {})[factor] = fit
                p = fit.p if design.looks is None else design.looks.p(fit.p, len(effects))
                tests[column, *sorted((arm, versus)), factor] = p
    adjusted = dict(zip(tests, share_among_factors(list(tests.values())), strict=True))
    return {
        (column, arm, versus): tuple(
            FactorRow(factor, fit.fitted, rounded(fit.p), rounded(adjusted[column, *sorted((arm, versus)), factor]))
            for factor, fit in of_pair.items()
        )
        for (column, arm, versus), of_pair in fits.items()
    }


def _counts_by_log(dimension: Dimension) -> bool | None:
    """Whether the values of a factor count by their logarithm; None for names."""
    if isinstance(dimension, Interval):
        return dimension.log
    return False if isinstance(dimension, Range) else is_log(dimension.values)


def _summarize(
    evidence: Evidence, contrast: ContrastRow, factors: dict[Key, tuple[FactorRow, ...]]
) -> SettingsRow | None:
    """A contrast of a claim over the settings; None without an effect."""
    row = _describe(evidence, contrast.column, contrast.arm, contrast.versus, contrast.relation, contrast.margin)
    if row is None:
        return None
    fits = factors.get((contrast.column, contrast.arm, contrast.versus), ())
    alpha = ALPHA if contrast.level is None else 1.0 - contrast.level
    wide, everywhere = predict(list(row.effects.values()), alpha), False
    if wide is not None:
        low, high = (-wide.high, -wide.low) if lower_is_better(contrast.column) else (wide.low, wide.high)
        everywhere = is_everywhere(contrast.verdict, contrast.relation, low, high, contrast.margin)
    words = choose_words(contrast.verdict, everywhere, [fit.factor for fit in fits if fit.p_table < ALPHA])
    ends = None if wide is None else (wide.low, wide.high)
    return replace(row, factors=fits, wide=ends, level=None if wide is None else wide.level, words=words)


def _describe(
    evidence: Evidence, column: str, arm: str, versus: str, relation: Relation, margin: float
) -> SettingsRow | None:
    effects = list_effects(evidence, column, arm, versus)
    difference = evidence.subtract(arm, versus, column)
    if difference.mean is None:
        return None
    turned = [-effect if lower_is_better(column) else effect for effect in effects.values()]
    count, prediction = count_holding(relation, turned, margin), predict(list(effects.values()))
    low, high = difference.interval()
    return SettingsRow(
        column=column,
        arm=arm,
        versus=versus,
        n=difference.n,
        mean=rounded(difference.mean),
        sd=None if difference.sd is None else rounded(difference.sd),
        ci_low=low,
        ci_high=high,
        prediction=None if prediction is None else (prediction.low, prediction.high),
        holds=count.part,
        share=(count.low, count.high),
        effects={str(seed): rounded(effect) for seed, effect in effects.items()},
    )


def _join_words(claim: ClaimRow, rows: Sequence[SettingsRow | None]) -> tuple[str, ...]:
    """The words of a claim from those of its contrasts: it holds nearly everywhere if all of them do; one that fails
    nearly everywhere is enough.
    """
    known = [row for row in rows if row is not None]
    factors = dict.fromkeys(fit.factor for row in known for fit in row.factors if fit.p_table < ALPHA)
    said = [word for row in known for word in row.words]
    everywhere = len(known) == len(rows) and all(any(EVERYWHERE in word for word in row.words) for row in known)
    if claim.verdict == CONTRADICTED:
        everywhere = any(word in said for word in choose_words(CONTRADICTED, True, ()))
    return choose_words(claim.verdict, everywhere, list(factors)) if known else ()


def _summarize_control(evidence: Evidence, column: str, arm: str, baseline: str, expected: str) -> SettingsRow | None:
    """An arm of known effect beside the baseline, with the settings on the expected side of zero; for the twin, those
    above it. Seen: its interval is on that side, or for the twin holds zero.
    """
    row = _describe(evidence, column, arm, baseline, ">", 0.0)
    if row is None:
        return None
    sign = -1.0 if lower_is_better(column) else 1.0
    if expected == WORSE:
        count = count_holding(">", [-sign * effect for effect in row.effects.values()], 0.0)
        row = replace(row, holds=count.part, share=(count.low, count.high))
    row = replace(row, expected=expected)
    if row.ci_low is None or row.ci_high is None:
        return row
    low, high = sorted((sign * row.ci_low, sign * row.ci_high))
    seen = {NOTHING: low <= 0.0 <= high, BETTER: low > 0.0, WORSE: high < 0.0}
    return replace(row, seen=seen[expected])
