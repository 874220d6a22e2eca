"""What a run's record says of its pre-training: of one stage, of several, and of several models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paribus.core.hub import MODEL
from paribus.corruption.examples import measure
from paribus.models import checkpoint
from paribus.models.ensemble import Ensemble
from paribus.objectives.predicted_text import PER_TEXT, name_tokens
from paribus.runs.folder import CURVES, STAGES
from paribus.training.budget import train_flops
from paribus.training.callbacks import Meter
from paribus.training.evaluate import compare, placed
from paribus.training.profile import process_peak
from paribus.training.stage import Stage


def describe_stage(stage: Stage, meter: Meter, metrics: dict[str, float]) -> dict[str, Any]:
    """A stage's part of the record: metrics, baselines, budget, speed, and the rates that were realized."""
    counts, size, examples = meter.counts, stage.data.vocabulary.size, stage.plan.examples
    tokens, predicted = counts["input_tokens"], counts["predicted"] + counts["moved"]
    flops = train_flops(stage.run, size, tokens, predicted, counts["sequences"])
    rate = meter.tokens_per_second()
    peak = process_peak(stage.profile) * stage.profile.ranks if tokens else 0.0
    sources = examples.read(counts)
    per_token = {"tokens": name_tokens(stage.data)} if stage.run.objective.predicts_text else {}
    targets = {
        loss: {"what": found.what, "places": found.places, **(per_token if loss not in PER_TEXT else {})}
        for evaluation in stage.evaluations
        for loss, found in evaluation.target_sets().items()
    }
    return {
        "metrics": metrics,
        "baselines": {
            name: dict(values) for evaluation in stage.evaluations for name, values in evaluation.baselines().items()
        },
        **({"targets": targets} if targets else {}),
        "budget": {
            "raw_tokens": counts["raw_tokens"],
            "input_tokens": tokens,
            "predicted_tokens": predicted,
            **({"target_tokens": counts["target_tokens"]} if "target_tokens" in counts else {}),
            "padding_tokens": counts["padding"],
            "flops": flops,
            "train_seconds": meter.train_seconds,
            "steps": stage.steps,
            "sequences": counts["sequences"],
        },
        "speed": {
            "tokens_per_second": rate,
            "mfu": flops / tokens * rate / peak if tokens else 0.0,
            "peak_flops": peak,
            "step_share": meter.step_seconds / meter.train_seconds if tokens else 0.0,
        },
        "realised": {
            **measure(examples, stage.data.vocabulary),
            "padding_share": examples.collator.rates(counts)["padding_share"],
            "epochs": counts["sequences"] / examples.readings / examples.size(0),
            "parameters": stage.encoder.parameter_count(),
            **({"sources": sources} if sources else {}),
            **({"hidden_characters": stage.data.raw.hidden} if stage.data.raw else {}),
        },
    }


def join_stages(stages: Sequence[Stage], parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The last stage's part of the record with the budget of all; `stages` holds metrics and budget of each.

    Its in-distribution loss (`own`) is that of the last stage that took a step, whose weights these are.
    """
    last = parts[-1]
    if len(parts) == 1:
        return last
    names = [stage.run.last_stage for stage in stages]
    each = [
        {
            "stage": name,
            **{key: part[key] for key in ("metrics", "budget", "realised", "own") if key in part},
            "earlier": dict(zip(names, part.get("earlier", []), strict=False)),
        }
        for name, part in zip(names, parts, strict=True)
    ]
    keys = dict.fromkeys(key for part in parts for key in part["budget"])
    budget = {key: sum(part["budget"].get(key, 0) for part in parts) for key in keys}
    lost = compare(parts[0]["metrics"], last["earlier"][0]) if stages[0].speaks else {}
    lost = {f"stage_{name}": nats for name, nats in lost.items()}
    trained = next((part for part in reversed(parts) if part["budget"]["steps"]), last)
    joined = {key: value for key, value in last.items() if key not in ("earlier", "own")}
    joined |= {"own": trained["own"]} if "own" in trained else {}
    earlier = zip(names[:-1], parts[:-1], strict=True)
    curves = {f"{STAGES}/{name}/{CURVES}": part["curves"][CURVES] for name, part in earlier} | last["curves"]
    return {**joined, "curves": curves, "metrics": {**last["metrics"], **lost}, "budget": budget, "stages": each}


def join_members(stages: Sequence[Stage], parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The part of the record of one model, or of several that predict together (T5, arXiv 1910.10683, section 3.6).

    For several, the metrics are those of their mean logits and the budget is their sum; the rest is from the first.
    """
    first, part = stages[0], parts[0]
    if len(stages) == 1:
        return part
    for stage in stages:  # one that was found done has no head yet
        checkpoint.load_head(stage.encoder, stage.head, stage.folder / MODEL)
    ensemble: Any = Ensemble([(stage.encoder, stage.head) for stage in stages])
    with placed(first.profile.device, ensemble):
        metrics = first.evaluation.measure_head(ensemble, ensemble)
    return {
        **part,
        "metrics": metrics,
        "budget": {key: sum(each["budget"][key] for each in parts) for key in part["budget"]},
        "realised": {**part["realised"], "members": len(stages)},
    }
