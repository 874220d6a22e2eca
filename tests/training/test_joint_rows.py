"""Rows of several tasks in one stream: every batch names its task and holds its slots."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np

from paribus.tasks.rows import FramedRows, GroupedRows, frame
from paribus.training.joint.rows import NamedRows, SeveralTasks
from paribus.training.steps import TaskSteps

VOCABULARY: Any = SimpleNamespace(pad=0, cls=2, sep=3)


def encoded(count: int, first: int) -> FramedRows:
    """Rows of one token each, `first` and the ids behind it; the label is the row's number."""
    return frame([[np.array([first + n]) for n in range(count)]], np.arange(count), VOCABULARY)


def several() -> SeveralTasks:
    pairs = GroupedRows(encoded(8, 100), np.arange(0, 9, 2), np.arange(4), most=2)
    teacher = NamedRows("short", encoded(6, 10), {"teacher_B": np.arange(6) / 10})
    return SeveralTasks([teacher, NamedRows("pairs", pairs)])


def test_each_microbatch_is_of_one_task_and_every_row_is_read_once() -> None:
    steps = TaskSteps(several(), batch_size=5, epochs=1, seed=0)
    seen: Counter[tuple[str, int]] = Counter()
    mixed = 0
    for step in range(steps.total):
        batches = steps[step]
        mixed += len({batch["task"] for batch in batches}) > 1
        for batch in batches:
            seen.update((batch["task"], int(label)) for label in batch["label_B"])
            assert batch["counts"]["rows"] == len(batch["label_B"])
    expected = [("short", n) for n in range(6)] + [("pairs", n) for n in range(4)]
    assert seen == Counter(expected)
    assert mixed > 0


def test_a_task_keeps_its_own_way_to_split_a_batch() -> None:
    rows = several()
    parts = rows.split(np.array([9, 0, 7, 3]))
    assert [part.tolist() for part in parts] == [[0, 3], [9], [7]]
    batch = rows.batch(parts[1], 8)
    assert batch["task"] == "pairs"
    assert batch["ids_BL"][:, 1].tolist() == [106, 107]


def test_slots_follow_the_rows_of_their_task_alone() -> None:
    rows = several()
    assert rows.batch(np.array([4, 1]), 1)["teacher_B"].tolist() == [0.4, 0.1]
    assert "teacher_B" not in rows.batch(np.array([6]), 1)


def test_lengths_are_those_of_the_tasks() -> None:
    assert several().length_N.tolist() == [3] * 6 + [6] * 4
