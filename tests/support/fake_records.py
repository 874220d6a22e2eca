"""Synthetic records of a small study: two arms, a weak third one, anchors, and a paper's table."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from paribus.core.jsonable import from_json, to_json
from paribus.reports.tables.build import build_table
from paribus.reports.tables.design import Design
from paribus.reports.tables.schema import Table
from paribus.runs.record import Record
from paribus.sweeps.sweep import SCRATCH

LOSS, TASK = "mlm_loss", "docs_package/accuracy"
MEANS = {"static_x10": (5.0, 0.60), "dynamic": (4.9, 0.605), "static": (5.4, 0.55), SCRATCH: (9.0, 0.20)}


def record(arm: str, seed: int, metrics: dict[str, float], **more: Any) -> dict[str, Any]:
    base = {
        "schema": 1,
        "signature": f"{arm}-{seed}",
        "study": "roberta_table1",
        "scale": "smoke",
        "arm": arm,
        "seed": seed,
        "status": "done",
        "metrics": metrics,
        "baselines": {LOSS: {"unigram": 6.5}, TASK: {"bag_of_words": 0.58, "majority": 0.11}},
        "task_runs": [{"task": "docs_package", "seed": k, "metrics": {"accuracy": metrics.get(TASK)}} for k in (0, 1)],
        "budget": {"input_tokens": 800_000, "raw_tokens": 800_000, "steps": 781, "flops": 1e12, "sequences": 12_500},
        "data": {"fingerprint": "abc"},
        "sweep_hash": "hash",
        "own": own(5.0),
    }
    return {**base, **more}


def own(loss: float, floor: float = 6.0) -> dict[str, Any]:
    """What a record says of the loss on its run's own noise, which falls by 0.1 over the last quarter, to `loss`."""
    losses = {100: max(floor, loss) + 0.5, 200: loss + 0.2, 300: loss + 0.1, 350: loss + 0.05, 400: loss}
    curve = [[step, 1000 * step, value] for step, value in losses.items()]
    return {"loss": loss, "floor": floor, "held_out": False, "curve": curve}


def study(seeds: int = 5, spread: float = 0.01) -> list[dict[str, Any]]:
    """Arms share a seed's luck, so that pairing helps; every number is reproducible."""
    noise = random.Random(7)
    found = []
    for seed in range(seeds):
        luck = noise.gauss(0, 3 * spread)
        for arm, (loss, accuracy) in MEANS.items():
            shift = luck + noise.gauss(0, spread)
            found.append(record(arm, seed, {LOSS: loss + shift, TASK: accuracy + 0.1 * shift}))
    return found


def design(**changes: Any) -> Design:
    values: dict[str, Any] = {
        "study": "roberta_table1",
        "scale": "smoke",
        "baseline": "static_x10",
        "columns": (LOSS, TASK, "sst2/accuracy"),
        "arms": {
            "static_x10": ["masking/schedule=copies"],
            "dynamic": ["masking/schedule=dynamic"],
            "static": ["masking/schedule=static"],
        },
        "varies": ("masking.schedule",),
        "claims": ("dynamic >= static_x10 on all, margin 0.5 points, margin 0.02 on mlm_loss",),
        "seeds": (0, 1, 2, 3, 4),
        "published": {
            "table": "roberta_table1",
            "rows": {"static_x10": "static masking", "dynamic": "dynamic masking"},
            "metrics": {"sst2/accuracy": "sst2_acc"},
        },
        "sweep_hash": "hash",
        "audit": {
            "controlled": True,
            "differences": {"static_x10": {}, "dynamic": {"masking.schedule.copies": [3, None]}},
        },
    }
    return Design(**{**values, **changes})


def read(records: Sequence[dict[str, Any]]) -> list[Record]:
    return [from_json(Record, content) for content in records]


def make_table(design: Design, records: Sequence[dict[str, Any]]) -> Table:
    return build_table(design, read(records))


def build(design: Design, records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The content of table.json."""
    content: dict[str, Any] = to_json(make_table(design, records))
    return content
