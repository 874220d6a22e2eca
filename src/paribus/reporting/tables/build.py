"""The table as data: records in, the content of table.json out. A pure function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from paribus.core.errors import UserError
from paribus.reporting.tables.design import Design
from paribus.reporting.tables.evidence import Evidence, Record, gather
from paribus.reporting.tables.facts import aggregate, beside, orders, remarks
from paribus.reporting.tables.footnotes import noise_scales, tuned
from paribus.sweeps.sweep import SCRATCH, TRIAL, UNMATCHED
from paribus.verdict.claims import Claim
from paribus.verdict.controls import insensitive, on_plateau, unmatched
from paribus.verdict.metrics import COMMON, in_points, incomparable, is_pairs, is_task, lower_is_better
from paribus.verdict.published import PublishedTable
from paribus.verdict.ruling import Contrast, Ruling, combine, rule
from paribus.verdict.sequential import Looks
from paribus.verdict.statistics import ALPHA, Paired, mean_sd, paired, rounded, summarize

SCHEMA = 1
BUDGETS = {
    "tokens": "input_tokens", "sequences": "sequences", "steps": "steps", "flops": "flops", UNMATCHED: "input_tokens",
}  # fmt: skip
SPENT = ("raw_tokens", "input_tokens", "predicted_tokens", "padding_tokens", "sequences", "steps", "flops")
ANCHORS = {
    "bag_of_words": "bag of words",
    "majority": "majority class",
    "most_frequent_tag": "most frequent tag",
    "regular_expression": "regular expression",
    "unigram": "unigram",
}

Table = dict[str, Any]


class Judged(NamedTuple):
    """What was measured and what the claims come to: `reasons` {column: why it decides nothing, or None}."""

    evidence: Evidence
    columns: list[str]
    reasons: dict[str, str | None]
    claims: list[dict[str, Any]]


def judged(design: Design, records: Sequence[Record]) -> Judged:
    """The verdicts on a design's claims, from the records of one study at one scale. Raises UserError as `build`."""
    claims, paper, evidence = design.parsed(), design.paper(), gather(design, records)
    if not any(evidence.done(arm) for arm in design.arms):
        raise UserError(f"no finished run of {design.study} at scale={design.scale}", "run `paribus run` first")
    _require_matched(design, evidence)
    columns = [column for column in design.columns if _measured(design, evidence, column)]
    reasons = {column: barred(design, evidence, column) for column in columns}
    return Judged(evidence, columns, reasons, _claims(design, evidence, paper, claims, columns, reasons))


def build(design: Design, records: Sequence[Record]) -> Table:
    """The content of table.json, from the records of one study at one scale.

    Raises UserError where no record is there, where the arms' realised budgets are not within 1 % of each other, or
    where a claim or the mapping to the paper's table cannot be read.
    """
    evidence, columns, reasons, claims = judged(design, records)
    paper = design.paper()
    about = {column: _about(column, reasons[column]) for column in columns}
    return {
        "schema": SCHEMA,
        "study": design.study,
        "title": design.title,
        "scale": design.scale,
        "baseline": design.baseline,
        "columns": columns,
        "about": about,
        "arms": [_arm(design, evidence, paper, arm, columns) for arm in design.arms],
        "anchors": _anchors(design, evidence, columns),
        "aggregate": aggregate(design, evidence, [column for column in columns if reasons[column] is None]),
        "claims": claims,
        "looks": _looks(design),
        "paper": _paper(design, evidence, paper, columns),
        "audit": {"varies": list(design.varies), **design.audit},
        **({"tuning": dict(design.tuning)} if design.tuning else {}),
        "budget": _budget(design, evidence),
        "notes": [
            *_remarks(design, evidence, columns, reasons),
            *remarks(claims, about),
            *tuned(design),
            *noise_scales(design, evidence),
            *evidence.notes,
        ],
        "sources": [] if paper is None else [paper.source],
    }


def _measured(design: Design, evidence: Evidence, column: str) -> bool:
    return any(evidence.values(arm, column) for arm in design.arms)


def _require_matched(design: Design, evidence: Evidence) -> None:
    if design.matched not in BUDGETS:
        raise UserError(f"matched: {design.matched} is no budget", f"known: {', '.join(BUDGETS)}")
    key = BUDGETS[design.matched]
    used = {
        f"{arm}/seed{seed}": float(run["budget"][key])
        for arm in design.arms
        for seed, run in evidence.done(arm).items()
        if key in run.get("budget", {})
    }
    if design.scale != TRIAL and design.matched != UNMATCHED and (why := unmatched(used)):
        raise UserError(
            f"budgets differ by more than 1 % in {design.matched}: {why}", "no fair table can be made of them"
        )


def barred(design: Design, evidence: Evidence, column: str) -> str | None:
    """Why a column decides nothing, or None."""
    baseline = list(evidence.values(design.baseline, column).values())
    if is_task(column):
        return insensitive(column, baseline, list(evidence.values(SCRATCH, column).values()))
    if why := incomparable(column, design.varies):
        return why
    test = next((name for name in COMMON if column.startswith(name)), None)
    if test is None:
        return None
    losses = list(evidence.values(design.baseline, f"{test}loss").values())
    return on_plateau(losses, evidence.baselines([design.baseline], f"{test}loss").get("unigram"))


def _about(column: str, reason: str | None) -> dict[str, Any]:
    return {
        "higher_is_better": not lower_is_better(column),
        "unit": "points" if in_points(column) else "own",
        "decides": reason is None,
        "reason": reason,
    }


def _arm(
    design: Design, evidence: Evidence, paper: PublishedTable | None, arm: str, columns: Sequence[str]
) -> dict[str, Any]:
    runs = evidence.runs.get(arm, {})
    return {
        "name": arm,
        "overrides": list(design.arms[arm]),
        "n": len(evidence.done(arm)),
        "status": _status(design, evidence, arm),
        **({"reason": design.absent[arm]} if arm in design.absent else {}),
        "metrics": {column: _cell(values) for column in columns if (values := evidence.values(arm, column))},
        "versus_baseline": {} if arm == design.baseline else _differences(design, evidence, arm, columns),
        "best": [c for c in columns if barred(design, evidence, c) is None and _best(design, evidence, arm, c)],
        "published": _published(design, paper, arm),
        "runs": [_run(seed, run) for seed, run in sorted(runs.items())],
    }


def _run(seed: int, run: Record) -> dict[str, Any]:
    kept = {key: run.get(key) for key in ("status", "signature", "wandb_id", "error") if run.get(key) is not None}
    return {"seed": seed, **kept}


def _status(design: Design, evidence: Evidence, arm: str) -> str:
    """done | failed | diverged | missing | not run, or `partial` where some seeds are done and others are not."""
    if arm in design.absent:
        return "not run"
    runs = evidence.runs.get(arm, {})
    states = {run["status"] for run in runs.values()} | {"missing" for seed in design.seeds if seed not in runs}
    if len(states) == 1:
        return str(states.pop())
    if "done" in states:
        return "partial"
    return "diverged" if "diverged" in states else "failed" if "failed" in states else "missing"


def _looks(design: Design) -> dict[str, Any] | None:
    """When the table was looked at, where seeds were added until its claims were decided."""
    if design.looks is None:
        return None
    n = len(design.seeds)
    return {**asdict(design.looks), "n": n, "level": rounded(design.looks.level(ALPHA, n))}


def _cell(values: dict[int, float]) -> dict[str, Any]:
    summary = summarize(list(values.values()))
    return {
        "mean": summary.mean,
        "sd": summary.sd,
        "ci_low": summary.ci_low,
        "ci_high": summary.ci_high,
        "values": list(values.values()),
        "seeds": list(values),
    }


def _differences(design: Design, evidence: Evidence, arm: str, columns: Sequence[str]) -> dict[str, Any]:
    found = {}
    for column in columns:
        pair = paired(evidence.values(arm, column), evidence.values(design.baseline, column))
        summary = pair.summary
        if summary.n:
            numbers = {"difference": summary.mean, "ci_low": summary.ci_low, "ci_high": summary.ci_high}
            found[column] = {**numbers, "p": pair.p, "n": summary.n}
    return found


def _best(design: Design, evidence: Evidence, arm: str, column: str) -> bool:
    """Whether the paired interval against every other arm lies on the better side of zero."""
    others = [other for other in design.arms if other != arm and evidence.values(other, column)]
    return bool(others) and all(_better(evidence, arm, other, column) for other in others)


def _better(evidence: Evidence, arm: str, other: str, column: str) -> bool:
    pair = paired(evidence.values(arm, column), evidence.values(other, column))
    low, high = pair.summary.ci_low, pair.summary.ci_high
    if low is None or high is None or pair.p is None:
        return False
    return high < 0.0 if lower_is_better(column) else low > 0.0


def _published(design: Design, paper: PublishedTable | None, arm: str) -> dict[str, Any]:
    """The paper's own numbers of this arm's row, under the paper's metric names."""
    row = design.published.get("rows", {}).get(arm)
    if paper is None or row is None:
        return {}
    found = paper.row(row)
    return {name: {"value": value, "source": paper.source} for name, value in found.values.items() if value is not None}


def _paper(design: Design, evidence: Evidence, paper: PublishedTable | None, columns: Sequence[str]) -> dict[str, Any]:
    """Which of the paper's metrics stand beside our columns, and which in a block of their own.

    A loss on text of our own is no counterpart of the paper's on its text: beside it stand the paper's numbers of tasks
    alone, below the scale that has its text too.
    """
    if paper is None:
        return {}
    mapped = design.published.get("metrics", {}).items()
    beside = {c: metric for c, metric in mapped if c in columns and (is_task(c) or design.scale == "paper")}
    rows = design.published.get("rows", {})
    return {
        "table": paper.id,
        "source": paper.source,
        "claim": paper.claim,
        "setting": paper.setting,
        "metrics": [metric.name for metric in paper.metrics],
        "beside": beside,
        "own": [metric.name for metric in paper.metrics if metric.name not in beside.values()],
        "rows": {arm: paper.row(row).arm for arm, row in rows.items()},
        "orders": orders(design, evidence, paper),
        "flags": [*paper.flags, *(f"{arm}: {flag}" for arm, row in rows.items() for flag in paper.row(row).flags)],
    }


def _anchors(design: Design, evidence: Evidence, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Rows without pre-training: the same model from scratch, then what needs no neural model at all."""
    told = [column for column in columns if is_task(column) or is_pairs(column)]
    scratch = {column: _cell(values) for column in told if (values := evidence.values(SCRATCH, column))}
    rows = [{"name": "from scratch", "n": len(evidence.done(SCRATCH)), "metrics": scratch}] if scratch else []
    found = {column: evidence.baselines(tuple(design.arms), column) for column in columns}
    for key in dict.fromkeys(name for values in found.values() for name in values):
        metrics = {c: {"mean": rounded(values[key])} for c, values in found.items() if key in values}
        rows.append({"name": ANCHORS.get(key, key.replace("_", " ")), "n": None, "metrics": metrics})
    return rows


def _claims(
    design: Design,
    evidence: Evidence,
    paper: PublishedTable | None,
    claims: Sequence[Claim],
    columns: Sequence[str],
    reasons: dict[str, str | None],
) -> list[dict[str, Any]]:
    contrasts = [_contrasts(design, evidence, claim, columns, reasons) for claim in claims]
    rulings = iter(rule([contrast for group in contrasts for contrast in group], design.looks))
    rows = []
    for claim, group in zip(claims, contrasts, strict=True):
        own = [next(rulings) for _ in group]
        outcome = combine(own)
        rows.append(
            {
                "text": claim.text,
                "verdict": outcome.verdict,
                "said": outcome.said(design.scale, _silent(design, claim, columns, reasons)),
                "seeds_needed": outcome.seeds,
                "open": outcome.more,
                "contrasts": [
                    {**_contrast(contrast, ruling), **beside(design, evidence, paper, contrast)}
                    for contrast, ruling in zip(group, own, strict=True)
                ],
            }
        )
    return rows


def _silent(design: Design, claim: Claim, columns: Sequence[str], reasons: dict[str, str | None]) -> list[str]:
    """The claim's columns that say nothing about it at this scale."""
    about = design.carrying if claim.columns is None else claim.columns
    return [column for column in about if column not in columns or reasons[column] is not None]


def _contrasts(
    design: Design, evidence: Evidence, claim: Claim, columns: Sequence[str], reasons: dict[str, str | None]
) -> list[Contrast]:
    """All pairs of a claim on its columns that were measured at this scale."""
    about = design.carrying if claim.columns is None else claim.columns
    return [
        Contrast(
            column,
            pair,
            claim.margin(column),
            _paired(design, evidence.values(pair.arm, column), evidence.values(pair.versus, column)),
            reasons[column],
            "; ".join(f"{arm}: {design.absent[arm]}" for arm in (pair.arm, pair.versus) if arm in design.absent),
        )
        for column in about
        if column in columns
        for pair in claim.pairs
    ]


def _paired(design: Design, first: dict[int, float], second: dict[int, float]) -> Paired:
    """With the 95 % interval, or where the table is looked at again and again the one that stays right under it."""
    found = paired(first, second)
    level = ALPHA if design.looks is None else design.looks.level(ALPHA, found.summary.n)
    return found if level in (0.0, ALPHA) else paired(first, second, level)


def _contrast(contrast: Contrast, ruling: Ruling) -> dict[str, Any]:
    summary = contrast.paired.summary
    return {
        "column": contrast.column,
        "arm": contrast.pair.arm,
        "relation": contrast.pair.relation,
        "versus": contrast.pair.versus,
        "margin": rounded(contrast.margin),
        "difference": summary.mean,
        "sd": summary.sd,
        "ci_low": summary.ci_low,
        "ci_high": summary.ci_high,
        "p": contrast.paired.p,
        "p_claim": None if ruling.p_claim is None else rounded(ruling.p_claim),
        "p_holm": None if ruling.p_holm is None else rounded(ruling.p_holm),
        "n": summary.n,
        "verdict": ruling.verdict,
        "seeds_needed": ruling.seeds,
        "detectable": ruling.detectable,
        "reason": ruling.reason,
    }


def _budget(design: Design, evidence: Evidence) -> dict[str, Any]:
    """What each arm really used, as means over its finished runs."""
    arms: dict[str, dict[str, float]] = {}
    for arm in design.arms:
        budgets = [run.get("budget", {}) for run in evidence.done(arm).values()]
        spent = {key: [float(b[key]) for b in budgets if key in b] for key in SPENT}
        arms[arm] = {key: rounded(mean_sd(values)[0]) for key, values in spent.items() if values}
    return {"matched": design.matched, "tolerance": 0.01, "arms": arms}


def _remarks(design: Design, evidence: Evidence, columns: Sequence[str], reasons: dict[str, str | None]) -> list[str]:
    """What a reader must know of the columns and of n."""
    notes = ["Two steps show that the sweep runs, and nothing else."] if design.scale == TRIAL else []
    notes += [f"{column}: {why}." for column, why in reasons.items() if why is not None]
    if absent := [column for column in design.columns if column not in columns]:
        notes.append(f"Not run at {design.scale} scale: {', '.join(absent)}.")
    notes += [] if design.looks is None else [_looked(design, design.looks)]
    single = [arm for arm in design.arms if len(evidence.done(arm)) == 1]
    if single:
        notes.append(f"One seed, so no interval: {', '.join(single)}.")
    tuning = {len(v) for arm in design.arms for run in evidence.done(arm).values() for v in _by_task(run).values()}
    if tuning and max(tuning) > 1:
        words = " to ".join(str(count) for count in sorted({min(tuning), max(tuning)}))
        notes.append(
            f"Task scores are means of {words} fine-tuning seeds in each pre-training seed; n counts the latter."
        )
    return notes


def _looked(design: Design, looks: Looks) -> str:
    n = len(design.seeds)
    level = f"{looks.level(ALPHA, n):.4f} instead of {ALPHA:.2f}"
    return (
        f"Seeds were added until the claims were decided: looks after {looks.first} to at most {looks.most} seeds, the "
        f"last after {n}. The claims' verdicts and intervals are at the level of that look ({level}, alpha spending of "
        "Lan and DeMets), so that all looks together keep the error rate."
    )


def _by_task(run: Record) -> dict[str, list[int]]:
    seeds: dict[str, list[int]] = {}
    for task_run in run.get("task_runs", []):
        seeds.setdefault(task_run["task"], []).append(task_run["seed"])
    return seeds
