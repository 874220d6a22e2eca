"""Examples of several rows: a long text in windows, the texts of a pair apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from small_finetuning import TASK, backbone, config
from stories import story

from paribus.core.config import compose
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.tasks.rows import GroupedRows, frame, window_starts
from paribus.tasks.types.base import TaskType
from paribus.tasks.types.regression import Regression, Similarity
from paribus.training.description import Run
from paribus.training.finetuner import finetuner
from paribus.training.run import run
from paribus.training.steps import task_batch

VOCABULARY = Vocabulary(size=60, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4))
COUNTS = (1, 3, 2, 5)


def groups(counts: tuple[int, ...] = COUNTS, most: int = 100) -> GroupedRows:
    random = np.random.default_rng(3)
    texts = [random.integers(5, 60, random.integers(3, 14)) for _ in range(sum(counts))]
    rows = frame([texts], np.zeros(sum(counts), np.int64), VOCABULARY)
    return GroupedRows(rows, np.concatenate([[0], np.cumsum(counts)]), np.array([0, 1, 1, 0]), most)


def made(task_type: TaskType, *overrides: str, rows: GroupedRows | None = None) -> tuple[Any, GroupedRows]:
    cfg = config(*overrides)
    encoded = groups() if rows is None else rows
    learner, _ = finetuner(Run.of(cfg), backbone(cfg), encoded, task_type, 7)
    return learner.eval(), encoded


def logits(learner: Any, encoded: Any, row_B: Any) -> torch.Tensor:
    batch = task_batch(encoded, np.array(row_B))
    with torch.inference_mode():
        found: torch.Tensor = learner.objective.heads["task"].logits(learner.encoder(batch), batch)
    return found


@pytest.mark.parametrize(("length", "room", "stride"), [(1, 8, 4), (8, 8, 4), (9, 8, 4), (30, 8, 4), (31, 8, 8)])
def test_windows_cover_the_text_and_end_with_it(length: int, room: int, stride: int) -> None:
    starts = window_starts(length, room, stride, 99)
    assert {at + k for at in starts for k in range(room)} >= set(range(length))
    assert starts[0] == 0
    assert max(starts) == max(0, length - room)
    assert all(0 < b - a <= stride for a, b in pairwise(starts))
    assert window_starts(length, room, stride, 2) == (starts if len(starts) <= 2 else [0, starts[-1]])


@pytest.mark.parametrize("kind", ["max", "mean", "attention", "transformer"])
def test_a_text_is_what_is_made_of_its_windows(kind: str) -> None:
    learner, encoded = made(TASK.task_type, f"finetune/head/windows={kind}")
    together = logits(learner, encoded, range(4))
    for row in range(4):  # the other texts of a batch, their padding and number of windows move nothing
        assert torch.allclose(together[row], logits(learner, encoded, [row])[0], atol=1e-5)
    head = learner.objective.heads["task"]
    batch = task_batch(encoded, np.array([3]))
    with torch.inference_mode():
        outputs = learner.encoder(batch)
        row_KD, pooled_D = outputs.row_BD, head.read(outputs, batch).row_BD[0]
        if kind in ("max", "mean"):
            assert torch.allclose(pooled_D, row_KD.amax(0) if kind == "max" else row_KD.mean(0), atol=1e-6)
        elif kind == "attention":
            score_K = torch.stack([head.query(head.key(row_D).tanh())[0] for row_D in row_KD])
            expected = sum(w * row_D for w, row_D in zip(score_K.exp() / score_K.exp().sum(), row_KD, strict=True))
            assert torch.allclose(pooled_D, expected, atol=1e-6)
        else:
            expected = head.layer((row_KD + head.position.weight[:5])[None])[0].mean(0)
            assert torch.allclose(pooled_D, expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["max", "mean", "attention"])
def test_one_window_is_the_text_read_whole(kind: str) -> None:
    one = groups((1, 1, 1, 1))
    plain, _ = made(TASK.task_type, rows=one)
    windowed, _ = made(TASK.task_type, f"finetune/head/windows={kind}", rows=one)
    assert torch.allclose(logits(windowed, one, range(4)), logits(plain, one.rows, range(4)), atol=1e-6)


def test_a_batch_is_read_in_parts_of_few_windows_with_the_same_gradient() -> None:
    parts = groups(most=4).split(np.arange(4))
    assert [part.tolist() for part in parts] == [[0, 1], [2], [3]]
    gradients = []
    for most in (100, 4):
        learner, encoded = made(TASK.task_type, "finetune/head/windows=mean", rows=groups(most=most))
        for part in encoded.split(np.arange(4)):
            batch = task_batch(encoded, part)
            (learner.objective.heads["task"](learner.encoder(batch), batch) / 4).backward()
        gradients.append(torch.cat([p.grad.flatten() for p in learner.parameters() if p.grad is not None]))
    assert torch.allclose(*gradients, atol=1e-5)


@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
def test_two_texts_are_compared_by_their_cosine(pooling: str) -> None:
    task_type, two = Regression(least=0.0, most=5.0), groups((2, 2, 2, 2))
    apart = ("finetune/head=siamese", f"finetune/head/pooling={pooling}")
    by_cosine, _ = made(task_type, *apart, "finetune.head.parts=cosine", rows=two)
    by_parts, _ = made(
        Similarity(("other", "same")),
        "finetune/head=siamese",
        "finetune.head.parts=[u,v,difference]",
        f"finetune/head/pooling={pooling}",
        rows=two,
    )
    found = logits(by_cosine, two, range(4))[:, 0]
    assert torch.equal(found, logits(by_parts, two, range(4))[:, 0])  # what is concatenated serves training alone
    for row in range(4):
        with torch.inference_mode():
            one = [by_cosine.encoder(task_batch(two.rows, np.array([2 * row + k]))).hidden_BLD[0] for k in (0, 1)]
        length_2 = two.rows.length_N[2 * row : 2 * row + 2]
        cut = [states[:n] for states, n in zip(one, length_2, strict=True)]
        u, v = (s[0] if pooling == "cls" else s.mean(0) if pooling == "mean" else s.amax(0) for s in cut)
        assert float(found[row]) == pytest.approx(float(u @ v / u.norm() / v.norm()), abs=1e-5)
    batch = task_batch(two, np.arange(4))
    loss = by_cosine.objective.heads["task"](by_cosine.encoder(batch), batch)
    assert float(loss) == pytest.approx(float((found - batch["label_B"] / 5).square().sum()), rel=1e-4)


def test_a_classifier_reads_the_parts_side_by_side() -> None:
    two = groups((2, 2, 2, 2))
    learner, _ = made(TASK.task_type, "finetune/head=siamese", "finetune.head.parts=[u,v,difference,product]", rows=two)
    batch = task_batch(two, np.arange(4))
    with torch.inference_mode():
        outputs = learner.encoder(batch)
        read_BD = learner.objective.heads["task"].read(outputs, batch).row_BD
    u, v = outputs.row_BD[0::2], outputs.row_BD[1::2]
    assert torch.allclose(read_BD, torch.cat([u, v, (u - v).abs(), u * v], -1))
    assert logits(learner, two, range(4)).shape == (4, 2)


def values(folder: Path) -> Path:
    for split, count in (("train", 40), ("validation", 12)):
        rows = [
            {"sentence1": story(n, 1), "sentence2": story(n + n % 3, 1), "label": 5.0 - n % 3} for n in range(count)
        ]
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{split}.parquet")
    return folder


def test_runs_of_both(arguments: list[str], task_folder: Path, tmp_path: Path) -> None:
    task = ["task=sst2", f"tasks.sst2.path={task_folder}", "finetune.length=8", "finetune/head/windows=attention"]
    record = json.loads((run(compose([*arguments, *task, "finetune.keep=true"])) / "result.json").read_text())
    assert 0 <= record["metrics"]["sst2/accuracy"] <= 1
    (tmp_path / "stsb").mkdir()
    task = [
        "task=stsb",
        f"tasks.stsb.path={values(tmp_path / 'stsb')}",
        "finetune/head=siamese",
        "finetune.head.parts=cosine",
    ]
    record = json.loads((run(compose([*arguments, *task])) / "result.json").read_text())
    assert -1 <= record["metrics"]["stsb/spearman"] <= 1


@pytest.mark.parametrize(
    "wrong",
    [
        ["finetune/head/windows=max", "finetune.head.windows.kind=median"],
        ["finetune/head/windows=max", "finetune.head.windows.stride=0"],
        ["finetune/head/windows=max", "finetune.head.windows.stride=99"],
        ["finetune/head/windows=memory"],
        ["finetune/head=siamese", "finetune.head.parts=[u,w]"],
        ["finetune/head=siamese", "finetune.head.parts=cosine"],
        ["finetune/head=siamese", "+finetune/head/windows=max"],
    ],
)
def test_what_does_not_fit_is_told_before_compute(
    wrong: list[str], arguments: list[str], task_folder: Path, refused_run: Callable[..., str]
) -> None:
    task = ["task=sst2", f"tasks.sst2.path={task_folder}"]
    assert refused_run(*arguments, *task, *wrong).startswith("finetune")
