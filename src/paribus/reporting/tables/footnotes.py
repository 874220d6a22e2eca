"""Notes on how the arms were run: what a search chose for them, and where their critical batch is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from paribus.reporting.tables.design import Design
from paribus.reporting.tables.evidence import Evidence
from paribus.verdict.statistics import mean_sd


def tuned(design: Design) -> list[str]:
    """How the arms were tuned; a value at an end of those tried may not be the best there is."""
    if not design.tuning:
        return []
    spec = design.tuning["spec"]
    space = "; ".join(f"{key} in {text}" for key, text in spec["space"].items())
    seeds = ", ".join(map(str, spec["seeds"]))
    how = f"{spec['sampler']} over {space}; by {spec['on']} of seed {seeds}, which no column uses"
    arms = {arm: found for arm in design.arms if (found := design.tuning["arms"].get(arm))}
    return [
        f"Tuned, {spec['trials']} trials each ({how}).",
        *(f"{arm}: {'; '.join(said)}." for arm, found in arms.items() if (said := _amiss(found))),
    ]


def _amiss(found: Mapping[str, Any]) -> list[str]:
    """Chosen values at an end, and trials without a number."""
    said = []
    for key, text in sorted(found["chosen"].items()):
        tried = sorted(number for entry in found["trials"] if (number := _number(entry["values"][key])) is not None)
        if len(set(tried)) > 2 and _number(text) in (tried[0], tried[-1]):
            said.append(f"{key} = {text} is at the end of what was tried")
    failed = sum(entry["value"] is None for entry in found["trials"])
    return [*said, *([f"{failed} of {len(found['trials'])} trials without a number"] if failed else [])]


def noise_scales(design: Design, evidence: Evidence) -> list[str]:
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
    return [f"{about}: {'; '.join(said)}. Below it a larger batch costs few examples, above it it saves few steps."]


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
