"""Several tasks on one encoder: shares, order of batches, equal bits, what is refused."""

from __future__ import annotations

import json
import pickle
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from stories import story

from paribus.core.config import compose
from paribus.core.processes import Stopped
from paribus.tasks.mixtures import BySize, Equally, Sampling
from paribus.tasks.rows import FramedRows, GroupedRows, frame
from paribus.training import callbacks, finetune
from paribus.training.joint import JointRows, JointSteps, NamedRows
from paribus.training.joint_settings import Joint
from paribus.training.run import run
from paribus.training.steps import TaskSteps

VOCABULARY: Any = SimpleNamespace(pad=0, cls=2, sep=3)
JOINT = "finetune/joint=multi_task"


def steps(sizes: dict[str, int], sampling: Sampling, step: str = "one_task", epochs: int = 3) -> JointSteps:
    """Steps of 4 rows over tasks of one-token rows, whose labels are their numbers."""
    rows = [
        NamedRows(name, frame([[np.array([9])] * count], np.arange(count), VOCABULARY)) for name, count in sizes.items()
    ]
    return JointSteps(rows, Joint(sampling, epochs=epochs, step=step), batch_size=4, seed=7)


@pytest.fixture
def two(arguments: list[str], task_folder: Path, tmp_path: Path) -> list[str]:
    """A run of seconds with two tasks that words decide, the second half as large."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for split in ("train", "validation"):
        rows = [{"sentence": f"{('low', 'high')[n % 2]} {story(n, 1)}", "label": n % 2, "idx": n} for n in range(32)]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / f"{split}.parquet")
    own = [f"tasks.sst2.path={task_folder}", f"tasks.cola.path={tmp_path}", "finetune.batch_size=8"]
    return [*arguments, "task=[sst2,cola]", *own, JOINT]


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


@pytest.mark.parametrize(
    ("sampling", "shares"),
    [
        (BySize(), (0.845, 0.144, 0.011)),
        (BySize(temperature=2.0), (0.655, 0.271, 0.074)),
        (Equally(), (0.333, 0.333, 0.333)),
    ],
)
def test_tasks_are_read_as_often_as_the_sampling_says(sampling: Sampling, shares: tuple[float, ...]) -> None:
    several = steps({"mnli": 393 * 4, "qnli": 67 * 4, "rte": 5 * 4}, sampling)
    seen = Counter(several[step][0]["task"] for step in range(several.total))
    assert several.total == 3 * 465
    for (task, turns), share in zip(seen.most_common(), shares, strict=True):
        assert turns / several.total == pytest.approx(share, abs=0.0015)
        assert several.describe()[task]["turns"] == turns


@pytest.mark.parametrize("step", ["one_task", "all_tasks"])
def test_every_row_is_read_before_any_is_read_again(step: str) -> None:
    several = steps({"big": 22, "small": 6}, Equally(), step)
    read: dict[str, list[int]] = {"big": [], "small": []}
    tasks = []
    for number in range(several.total):
        batches = several[number]
        tasks.append(len({batch["task"] for batch in batches}))
        assert sum(len(batch["label_B"]) for batch in batches) <= 4
        for batch in batches:
            read[batch["task"]] += batch["label_B"].tolist()
    assert max(tasks) == (1 if step == "one_task" else 2)
    for task, size in (("big", 22), ("small", 6)):
        often = Counter(read[task])
        if step == "one_task":
            firsts = [Counter(read[task][at : at + size]) for at in range(0, len(read[task]) - size + 1, size)]
            assert all(len(first) == size for first in firsts)
            assert read[task][:size] != read[task][size : 2 * size]
        assert max(often.values()) - min(often.values()) <= 1


def test_a_step_depends_on_its_number_alone() -> None:
    several = steps({"big": 22, "small": 6}, BySize(), "all_tasks")
    last = several.total - 1
    again = pickle.loads(pickle.dumps(steps({"big": 22, "small": 6}, BySize(), "all_tasks")))
    for mine, other in zip(several[last], again[last], strict=True):
        assert mine["task"] == other["task"]
        assert torch.equal(mine["label_B"], other["label_B"])


def test_joint_training_is_the_same_in_every_bit_however_it_is_done(
    two: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = record(run(compose([*two, "finetune.seeds=[0,1]"])))
    workers = record(run(compose([*two, "finetune.seeds=[0,1]", "profile.workers=2", f"paths.runs={tmp_path / 'w'}"])))
    asked = compose([*two, "finetune.seeds=[0,1]", f"paths.runs={tmp_path / 'killed'}"])
    own, done = finetune.finetune_once, []

    def killed(*parts: Any) -> Any:
        if len(done) == 1:
            raise KeyboardInterrupt
        done.append(parts)
        return own(*parts)

    monkeypatch.setattr(finetune, "finetune_once", killed)
    with pytest.raises(KeyboardInterrupt):
        run(asked)
    monkeypatch.setattr(finetune, "finetune_once", own)
    trained: list[int] = []
    real = finetune.train_joint
    monkeypatch.setattr(finetune, "train_joint", lambda *parts: (trained.append(1), real(*parts)))
    resumed = record(run(asked))
    assert trained == []  # the joint training is not repeated
    assert whole["task_runs"] == workers["task_runs"] == resumed["task_runs"]
    assert whole["gold"] == resumed["gold"]
    assert whole["joint"] == resumed["joint"]
    assert {task: part["turns"] for task, part in whole["joint"]["tasks"].items()} == {"sst2": 24, "cola": 12}


def test_a_joint_training_that_is_stopped_goes_on_from_its_checkpoint(
    two: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = record(run(compose(two)))
    asked, count = [*two, f"paths.runs={tmp_path / 'stopped'}"], iter(range(1000))
    stop = 2 + 12  # steps of the pre-training, and of the joint training, which has 36
    monkeypatch.setattr(callbacks, "asked_to_stop", lambda: signal.SIGTERM if next(count) == stop else None)
    with pytest.raises(Stopped):
        run(compose(asked))
    (kept,) = tmp_path.glob("stopped/**/joint/seed0")
    assert callbacks.saved_steps(kept) == 13
    monkeypatch.setattr(callbacks, "asked_to_stop", lambda: None)
    assert record(run(compose(asked)))["task_runs"] == whole["task_runs"]


def test_tasks_learn_together_and_a_task_beside_starts_from_their_encoder(two: list[str]) -> None:
    fast = ["finetune.optimizer.lr=2e-3", "finetune.joint.epochs=16"]
    alone = record(run(compose([*two, *fast, "finetune.epochs=0"])))
    assert alone["metrics"]["sst2/accuracy"] > 0.9
    assert alone["metrics"]["cola/matthews"] > 0.8
    folder = run(compose([*two, fast[0], "finetune.epochs=1", "finetune.keep=true"]))
    assert (folder / "joint" / "seed0.safetensors").is_file()
    assert not (run(compose([*two, "finetune.epochs=1"])) / "joint").exists()


def test_without_joint_training_nothing_changes(two: list[str]) -> None:
    bare = [text for text in two if text != JOINT]
    plain, joint = (record(run(compose(asked))) for asked in (bare, two))
    assert "joint" not in plain
    assert plain["signature"] != joint["signature"]
    assert plain["pretrain_signature"] == joint["pretrain_signature"]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (["finetune.joint.tasks=[sst2,mnli]"], "finetune.joint.tasks: mnli is not a task of the run"),
        (["finetune.joint.tasks=[sst2]"], "finetune/joint trains several tasks together, but has sst2"),
        (["finetune.joint.step=two"], "finetune.joint.step=two is unknown"),
        (["finetune.joint.epochs=0"], "finetune.joint.epochs=0"),
        (["finetune.joint.lr=0"], "finetune.joint.lr=0"),
        (["finetune.joint.sampling.temperature=0"], "sampling.temperature=0"),
        (["members=2", "evaluation.probe_examples=0"], "finetune/joint does not work with an ensemble"),
        (["finetune.epochs=0", "finetune.replay=1.0"], "finetune.replay=1.0, but finetune.epochs=0"),
    ],
)
def test_what_cannot_be_trained_together_is_told(
    two: list[str], bad: list[str], said: str, refused_run: Callable[..., str]
) -> None:
    assert said in refused_run(*two, *bad)


def test_a_task_that_cannot_name_a_head_is_told(
    two: list[str], tmp_path: Path, refused_run: Callable[..., str]
) -> None:
    task = f"_target_:paribus.tasks.tables.table.LabelTable,name:train,path:{tmp_path},classes:[a,b]"
    own = f"+tasks.train={{{task},columns:{{text:sentence,label:label}}}}"
    assert "cannot train a task named train: rename it, for example my_train" in refused_run(*two, own)


def test_a_task_without_training_rows_is_told(two: list[str], tmp_path: Path, refused_run: Callable[..., str]) -> None:
    import pyarrow.parquet as pq

    rows = pq.read_table(tmp_path / "train.parquet")
    pq.write_table(rows.slice(0, 0), tmp_path / "train.parquet")
    assert "tasks.cola: no labeled examples in train" in refused_run(*two)


def encoded(count: int, first: int) -> FramedRows:
    """Rows of one token each, `first` and the ids behind it; the label is the row's number."""
    return frame([[np.array([first + n]) for n in range(count)]], np.arange(count), VOCABULARY)


def several() -> JointRows:
    pairs = GroupedRows(encoded(8, 100), np.arange(0, 9, 2), np.arange(4), most=2)
    return JointRows([NamedRows("short", encoded(6, 10)), NamedRows("pairs", pairs)])


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


def test_lengths_are_those_of_the_tasks() -> None:
    assert several().length_N.tolist() == [3] * 6 + [6] * 4


@pytest.mark.parametrize("step", ["one_task", "all_tasks"])
def test_a_pass_reads_at_most_so_many_rows(step: str) -> None:
    alone = TaskSteps(several(), batch_size=5, epochs=2, seed=0, most=7)
    assert alone.total == 4
    joint = JointSteps(several().tasks, Joint(BySize(), epochs=2, step=step), batch_size=3, seed=0, most=3)
    assert sum(len(batch["label_B"]) for step in range(joint.total) for batch in joint[step]) == 12
