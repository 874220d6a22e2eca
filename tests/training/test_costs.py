"""What a fine-tuning costs: columns that are measured, and FLOPs that are counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from toy_training import VOCABULARY

from paribus.core.config import compose
from paribus.models.memory import MemoryBert
from paribus.tasks.rows import GroupedRows, frame
from paribus.training.costs import count_tuning_flops, measuring
from paribus.training.run import run

SHAPE = MemoryBert(2, 16, 2, 32, attention="left", memory=8)
NAMES = {"tuning_seconds", "tuning_megabytes", "tuning_gigaflops", "answering_milliseconds", "answering_megabytes"}


def test_backward_counts_twice_and_of_windows_in_order_through_the_last_one_alone() -> None:
    rows = frame([[np.arange(5, 5 + size) for size in (6, 6, 4, 2)]], np.zeros(4, np.int64), VOCABULARY)
    plain = SHAPE.without_memory()
    of_all = sum(plain.forward_flops(length, length, rows=1) for length in (8, 8, 6, 4))
    assert count_tuning_flops(SHAPE, rows, 5) == pytest.approx(5 * 3 * of_all)
    grouped = GroupedRows(rows, np.array([0, 3, 4]), np.zeros(2, np.int64), 9)
    assert count_tuning_flops(SHAPE, grouped, 1) == pytest.approx(3 * of_all)
    remembered = [SHAPE.forward_flops(length, length, rows=1) for length in (8, 8, 6, 4)]
    found = count_tuning_flops(SHAPE, replace(grouped, in_order=True), 1)
    assert found == pytest.approx(sum(remembered) + 2 * (remembered[2] + remembered[3]))


def test_the_most_memory_is_measured() -> None:
    spent: dict[str, float] = {}
    with measuring(spent, "work", "cpu"):
        held = np.ones(40_000_000 // 8)
        del held
    assert spent["work_seconds"] > 0
    assert spent["work_megabytes"] == pytest.approx(40, rel=0.2)


def test_a_run_records_its_costs_if_it_is_asked_to(arguments: list[str], task_folder: Path) -> None:
    task = ["task=sst2", f"tasks.sst2.path={task_folder}"]
    usual = json.loads((run(compose([*arguments, *task])) / "result.json").read_text())
    asked = json.loads((run(compose([*arguments, *task, "finetune.costs=true"])) / "result.json").read_text())
    assert asked["metrics"].keys() - usual["metrics"].keys() == {f"sst2/{name}" for name in NAMES}
    assert asked["metrics"]["sst2/accuracy"] == usual["metrics"]["sst2/accuracy"]


@pytest.mark.parametrize("other", ["finetune.ensemble=2", "finetune/probe=linear"])
def test_what_it_does_not_count_is_refused(
    other: str, arguments: list[str], task_folder: Path, refused_run: Callable[..., str]
) -> None:
    message = refused_run(*arguments, "task=sst2", f"tasks.sst2.path={task_folder}", "finetune.costs=true", other)
    assert message.startswith("finetune.costs")
