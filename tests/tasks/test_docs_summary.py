"""Summaries of functions from their signatures and the rest of their docstrings."""

from __future__ import annotations

from pathlib import Path

from paribus.tasks.baselines import measure_baselines
from paribus.tasks.docs.summary import DocsSummary


def test_a_package_gives_summaries(tmp_path: Path) -> None:
    task = DocsSummary("docs_summary", ["omegaconf", "optuna"], max_train=60, max_validation=20)
    examples = task.examples(tmp_path)
    assert {split: len(rows) for split, rows in examples.items()} == {"train": 60, "validation": 20}
    for row in (*examples["train"], *examples["validation"]):
        assert row.text.endswith(")")
        assert row.target
        assert row.pair
        assert 3 <= len(row.target.split()) <= 30
        assert row.target not in row.pair.split("\n")
    found = measure_baselines(task, tmp_path)
    assert 0 < found["rougeL"]["name"] < 1
    assert set(found["rougeL"]) == {"majority", "bag_of_words", "first_sentence", "name"}
