"""The table as data: records in, the content of table.json out. A pure function."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ceteris.errors import UserError
from ceteris.published.atlas import PublishedTable
from ceteris.study.sweep import SCRATCH, TRIAL
from ceteris.tables.design import Design
from ceteris.tables.evidence import Evidence, Record, gather
from ceteris.verdict.claims import Claim
from ceteris.verdict.controls import insensitive, on_plateau, unmatched
from ceteris.verdict.metrics import COMMON, in_points, incomparable, is_task, lower_is_better
from ceteris.verdict.ruling import Contrast, Ruling, combine, rule
from ceteris.verdict.statistics import mean_sd, paired, rounded, summarize

SCHEMA = 1
BUDGETS = {"tokens": "input_tokens", "sequences": "sequences", "steps": "steps", "flops": "flops"}
SPENT = ("raw_tokens", "input_tokens", "predicted_tokens", "padding_tokens", "sequences", "steps", "flops")
ANCHORS = {"bag_of_words": "bag of words", "majority": "majority class", "unigram": "unigram"}

Table = dict[str, Any]


def build(design: Design, records: Sequence[Record]) -> Table:
    """The content of table.json, from the records of one study at one scale.

    Raises UserError where no record is there, where the arms' realised budgets are not within 1 % of each other, or
    where a claim or the mapping to the paper's table cannot be read.
    """
    claims, paper, evidence = design.parsed(), design.paper(), gather(design, records)
    if not any(evidence.done(arm) for arm in design.arms):
        raise UserError(f"no finished run of {design.study} at scale={design.scale}", "run `ceteris run` first")
    _require_matched(design, evidence)
    columns = [column for column in design.columns if _measured(design, evidence, column)]
    reasons = {column: barred(design, evidence, column) for column in columns}
    return {
        "schema": SCHEMA,
        "study": design.study,
        "title": design.title,
        "scale": design.scale,
        "baseline": design.baseline,
        "columns": columns,
        "about": {column: _about(column, reasons[column]) for column in columns},
        "arms": [_arm(design, evidence, paper, arm, columns) for arm in design.arms],
        "anchors": _anchors(design, evidence, columns),
        "claims": _claims(design, evidence, claims, columns, reasons),
        "paper": _paper(design, paper, columns),
        "audit": {"varies": list(design.varies), **design.audit},
        **({"tuning": dict(design.tuning)} if design.tuning else {}),
        "budget": _budget(design, evidence),
        "notes": [
            *_remarks(design, evidence, columns, reasons),
            *_tuned(design),
            *_noise(design, evidence),
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
    if design.scale != TRIAL and (why := unmatched(used)):
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
    if not column.startswith(COMMON):
        return None
    losses = list(evidence.values(design.baseline, f"{COMMON}loss").values())
    return on_plateau(losses, evidence.baselines([design.baseline], f"{COMMON}loss").get("unigram"))


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
    """done | failed | diverged | missing, or `partial` where some seeds are done and others are not."""
    runs = evidence.runs.get(arm, {})
    states = {run["status"] for run in runs.values()} | {"missing" for seed in design.seeds if seed not in runs}
    if len(states) == 1:
        return str(states.pop())
    if "done" in states:
        return "partial"
    return "diverged" if "diverged" in states else "failed" if "failed" in states else "missing"


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


def _paper(design: Design, paper: PublishedTable | None, columns: Sequence[str]) -> dict[str, Any]:
    """Which of the paper's metrics stand beside our columns, and which in a block of their own."""
    if paper is None:
        return {}
    beside = {column: metric for column, metric in design.published.get("metrics", {}).items() if column in columns}
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
        "flags": [*paper.flags, *(f"{arm}: {flag}" for arm, row in rows.items() for flag in paper.row(row).flags)],
    }


def _anchors(design: Design, evidence: Evidence, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Rows without pre-training: the same model from scratch, then what needs no neural model at all."""
    scratch = {c: _cell(values) for c in columns if is_task(c) and (values := evidence.values(SCRATCH, c))}
    rows = [{"name": "from scratch", "n": len(evidence.done(SCRATCH)), "metrics": scratch}] if scratch else []
    found = {column: evidence.baselines(tuple(design.arms), column) for column in columns}
    for key in dict.fromkeys(name for values in found.values() for name in values):
        metrics = {c: {"mean": rounded(values[key])} for c, values in found.items() if key in values}
        rows.append({"name": ANCHORS.get(key, key.replace("_", " ")), "n": None, "metrics": metrics})
    return rows


def _claims(
    design: Design,
    evidence: Evidence,
    claims: Sequence[Claim],
    columns: Sequence[str],
    reasons: dict[str, str | None],
) -> list[dict[str, Any]]:
    contrasts = [_contrasts(design, evidence, claim, columns, reasons) for claim in claims]
    rulings = iter(rule([contrast for group in contrasts for contrast in group]))
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
                "contrasts": [_contrast(c, ruling) for c, ruling in zip(group, own, strict=True)],
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
            paired(evidence.values(pair.arm, column), evidence.values(pair.versus, column)),
            reasons[column],
        )
        for column in about
        if column in columns
        for pair in claim.pairs
    ]


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


def _tuned(design: Design) -> list[str]:
    """How the arms were tuned, and what was chosen; a value at an end of those tried may not be the best there is."""
    if not design.tuning:
        return []
    spec = design.tuning["spec"]
    space = "; ".join(f"{key} in {text}" for key, text in spec["space"].items())
    seeds = ", ".join(map(str, spec["seeds"]))
    how = f"{spec['sampler']} over {space}; by {spec['on']} of seed {seeds}, which no column uses"
    return [
        f"Tuned, {spec['trials']} trials each ({how}).",
        *(f"{arm}: {_choice(found)}." for arm in design.arms if (found := design.tuning["arms"].get(arm))),
    ]


def _choice(found: Mapping[str, Any]) -> str:
    words = []
    for key, text in sorted(found["chosen"].items()):
        tried = sorted(number for entry in found["trials"] if (number := _number(entry["values"][key])) is not None)
        ends = (tried[0], tried[-1]) if len(set(tried)) > 1 else ()
        words.append(f"{key} = {text}" + (", at the end of what was tried" if _number(text) in ends else ""))
    failed = sum(entry["value"] is None for entry in found["trials"])
    return "tuned to " + "; ".join(words) + (f" ({failed} trials failed)" if failed else "")


def _noise(design: Design, evidence: Evidence) -> list[str]:
    """Where the critical batch is: the gradient noise scale of each arm that measured it, over its seeds."""
    said = []
    for arm in design.arms:
        found = [run.get("realised", {}).get("noise_scale") for run in evidence.done(arm).values()]
        measured = [scale for scale in found if scale and scale["measured"]]
        if measured:
            said.append(f"{arm} {_scale(measured)}")
    if not said:
        return []
    about = "Gradient noise scale (McCandlish et al. 2018, appendix A), second half of training"
    return [f"{about}: {'; '.join(said)}. A larger batch costs few examples below it and saves few steps above it."]


def _scale(measured: Sequence[Mapping[str, Any]]) -> str:
    """Such as `64 sequences (3,900 tokens; batch 16)`: the seeds' mean noise over their mean signal."""
    noise, signal = (math.fsum(scale[key] for scale in measured) for key in ("noise", "signal"))
    batch, length = (mean_sd([scale[key] for scale in measured])[0] for key in ("batch", "tokens_per_sequence"))
    if noise <= 0.0 or signal <= 0.0:
        return f"not measurable (batch {batch:.4g}: noise hides the gradient)"
    ratio = noise / signal
    return f"{_two(ratio)} sequences ({_two(ratio * length)} tokens; batch {batch:.4g})"


def _two(value: float) -> str:
    """To two digits, as the measurement allows no more."""
    return f"{float(f'{value:.2g}'):,.4g}" if value < 100 else f"{float(f'{value:.2g}'):,.0f}"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _by_task(run: Record) -> dict[str, list[int]]:
    seeds: dict[str, list[int]] = {}
    for task_run in run.get("task_runs", []):
        seeds.setdefault(task_run["task"], []).append(task_run["seed"])
    return seeds
