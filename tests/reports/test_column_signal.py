"""Signal and noise of columns, on scores whose parts were planted."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest
from fake_records import TASK, design, own, record, study

from paribus.core.jsonable import from_json
from paribus.reports.column_signal import ColumnSignal, find_denominator, measure_columns, summarize_columns
from paribus.reports.site.columns import render_columns, write_columns
from paribus.reports.tables.schema import PRETRAININGS, TUNINGS
from paribus.runs.record import Record
from paribus.sweeps.sweep import SCRATCH

BASELINE, EXAMPLES = "static_x10", 4000


def plant(between: float, within: float, seeds: int = 300, name: str = "planted", **more: Any) -> list[dict[str, Any]]:
    """Records of a baseline at 0.6 and of its model from scratch at 0.5, with two fine-tunings of each run."""
    noise = random.Random(5)
    rows = []
    for seed in range(seeds):
        run = noise.gauss(0.6, between)
        scores = [round(EXAMPLES * (run + noise.gauss(0.0, within))) / EXAMPLES for _ in range(2)]
        tunings = [
            {"task": "docs_package", "seed": k, "metrics": {"accuracy": score}} for k, score in enumerate(scores)
        ]
        mean = {TASK: math.fsum(scores) / 2}
        rows.append(record(BASELINE, seed, mean, study=name, task_runs=tunings, **more))
        rows.append(record(SCRATCH, seed, {TASK: 0.5}, study=name, own=None))
    return rows


def measure(rows: list[dict[str, Any]], replication: str = PRETRAININGS) -> ColumnSignal:
    asked = design(study=rows[0]["study"], seeds=tuple(sorted({row["seed"] for row in rows})))
    (found,) = measure_columns(asked, [from_json(Record, row) for row in rows], replication)
    return found


def test_planted_noise_is_taken_apart() -> None:
    found = measure(plant(0.03, 0.02))
    assert found.signal == pytest.approx(0.1, abs=0.005)
    assert found.sd_pretraining == pytest.approx(0.03, rel=0.1)
    assert found.sd_finetuning == pytest.approx(0.02, rel=0.1)
    assert found.examples == EXAMPLES
    error = math.sqrt(found.baseline * (1 - found.baseline) / EXAMPLES)
    assert found.se_evaluation == pytest.approx(error)
    assert found.ratio == pytest.approx(found.signal / math.hypot(found.sd_pretraining, found.sd_finetuning, error))
    assert (found.bag_of_words, found.chance) == (0.58, 0.11)


def test_the_seeds_of_one_checkpoint_are_those_of_fine_tuning() -> None:
    rows = plant(0.03, 0.0, seeds=40)
    for row in rows:
        row["task_runs"] = row["task_runs"][:1]
    found = measure(rows, TUNINGS)
    assert found.sd_finetuning == found.sd_seeds == pytest.approx(0.03, rel=0.3)
    assert found.sd_pretraining is None
    assert measure(rows).sd_finetuning is None  # one fine-tuning of each run: its part is not known


def test_fine_tunings_at_chance_are_counted() -> None:
    rows = plant(0.0, 0.002, seeds=4)
    for row in rows:
        row["baselines"] = {TASK: {"majority": 0.6}}
    rows[0]["task_runs"][0]["metrics"]["accuracy"] = 0.7
    found = measure(rows)
    assert (found.at_chance, found.scores, found.bag_of_words) == (7, 8, None)


def test_the_number_of_examples_is_on_record_or_follows_from_the_scores() -> None:
    counted = plant(0.01, 0.01, seeds=3, task_examples={"docs_package": {"examples": {"validation": 12}, "leaked": {}}})
    assert measure(counted).examples == 12
    assert find_denominator([0.5, 1 / 3, 2 / 7, 0.0, 1.0]) == 42
    assert find_denominator([0.5, 0.5, 0.25, 0.0, 1.0]) is None  # too few to say
    assert find_denominator([0.1234567, 0.2345678, 0.3456789, 0.4567891, math.pi / 4]) is None


def test_a_baseline_on_its_plateau_says_nothing_of_a_column() -> None:
    strong, weak = measure(plant(0.01, 0.01, seeds=5)), measure(plant(0.01, 0.01, seeds=5, name="stuck", own=own(5.9)))
    assert (strong.stuck, weak.stuck) == (0, 5)
    assert summarize_columns([weak]) == []
    (row,) = summarize_columns([strong, weak])
    assert (row.studies, row.ratio, row.above_words, row.with_words) == (1, strong.ratio, 1, 1)


def test_the_page_and_its_numbers() -> None:
    signals = [measure(plant(0.01, 0.01, seeds=5)), measure(plant(0.01, 0.01, seeds=5, name="stuck", own=own(5.9)))]
    text = render_columns(signals).decode()
    assert "## At smoke scale\n\n1 of 2 studies have a baseline that left its plateau in every run.\n\n| column" in text
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {TASK}")]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[1:6] == ["1", f"{100 * signals[0].baseline:.1f}", "50.0", "58.0", f"{100 * signals[0].signal:+.1f}"]
    assert [one["study"] for one in json.loads(write_columns(signals))] == ["planted", "stuck"]


def test_a_study_without_a_model_from_scratch_has_no_signal() -> None:
    rows = [row for row in study() if row["arm"] != SCRATCH]
    assert measure_columns(design(), [from_json(Record, row) for row in rows], PRETRAININGS) == []
