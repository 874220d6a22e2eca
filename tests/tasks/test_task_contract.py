"""Every task of `conf/task`, and a fine-tuning of each kind from config to record."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from paribus.core.build import build
from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.finetuning import saved
from paribus.models import checkpoint
from paribus.tasks.tables.table import ValueTable
from paribus.training.description import Run
from paribus.training.run import run
from paribus.training.steps import task_batch

ROOT = Path(__file__).parents[2]
BILSTM = ["finetune/head=bilstm", "finetune/head/layers=concat", "finetune.head.layers.read=[1,-1]"]
REAL = {  # task: folder, examples of validation
    "cola": ("glue/cola", 1043),
    "mrpc": ("glue/mrpc", 408),
    "stsb": ("glue/stsb", 1500),
    "rte": ("glue/rte", 277),
    "wnli": ("glue/wnli", 71),
    "qnli": ("glue/qnli_devsplit", 1037),
    "boolq": ("boolq_devsplit", 741),
    "ag_news": ("ag_news", 7600),
    "wnut_17": ("wnut_17", 1009),
    "ud_en_ewt": ("ud_en_ewt", 2001),
    "squad_v1": ("squad", 2910),
    "squad_v2": ("squad_v2_devsplit", 1378),
}


@pytest.mark.parametrize("name", REAL)
def test_the_real_sets_have_their_sizes(name: str, shared: Path, tmp_path: Path) -> None:
    folder, expected = REAL[name]
    cfg = compose(["scale=test", f"task={name}", f"tasks.{name}.path={shared / folder}"])
    summary = build(cfg.tasks[name]).summary(tmp_path)
    assert summary["examples"]["validation"] == expected
    assert sum(summary["labels"]["validation"].values()) >= expected


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "conf/task").glob("*.yaml")))
def test_every_task_makes_its_task_type(name: str) -> None:
    folder = ["tasks.text_table.path=anywhere"] if name == "text_table" else []
    cfg = compose(["scale=test", f"task={name}", *folder])
    for node in cfg.tasks.values():
        task = build(node)
        assert build(task.task_type.config()) == task.task_type


@pytest.mark.parametrize("path", sorted((ROOT / "conf/task").glob("*.yaml")), ids=lambda path: path.stem)
def test_a_task_asks_for_the_files_that_it_reads(path: Path) -> None:
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines):
        if line.strip().startswith("path: null") and "instead of the hub" in line and "these splits" not in line:
            splits = next(each for each in lines[number:] if each.strip().startswith("splits:")).split("}")[0]
            theirs = {part.split(":")[1].strip() for part in splits.split("{")[1].split(",")}
            assert set(re.findall(r"(\w+)\.parquet", line)) == theirs


TOKENS = ["finetune.truncation=tail", "finetune/head/pooling=mean"]
ROWS = ["finetune.head.pooler=pretrained", "finetune/head=linear"]
COSINE = ["finetune/head=siamese", "finetune.head.parts=cosine"]
CLASSES = ["finetune.label_smoothing=0.1", "finetune.focal=2"]


@pytest.mark.parametrize(
    ("task", "unread", "read"),
    [
        (["task=squad_v1"], [*TOKENS, *ROWS, *CLASSES, "finetune.head.dropout=0"], ["finetune/head=bilstm"]),
        (["task=wnut_17", "tasks.wnut_17.crf=true"], [*TOKENS, *ROWS, *CLASSES], ["finetune.head.dropout=0"]),
        (["task=wnut_17"], [*TOKENS, *ROWS], CLASSES),
        (["task=stsb"], CLASSES, [*TOKENS, *ROWS, "finetune.head.dropout=0"]),
        (["task=stsb", *COSINE], ["finetune.head_lr=1e-3"], ["finetune/head/pooling=mean"]),
        (["task=stsb", *COSINE, "finetune/head/pooling=cnn"], [], ["finetune.head_lr=1e-3"]),
        (["task=imdb", "finetune/head/windows=max"], ["finetune.truncation=tail"], [TOKENS[1], *CLASSES]),
        (["task=rte", "finetune/head=siamese"], ["finetune.truncation=tail"], [TOKENS[1], *CLASSES]),
        (["task=sst2"], ["finetune.target_length=9"], [*TOKENS, *CLASSES, "finetune.head.dropout=0"]),
        (["task=sst2", "model=t5_tiny"], [TOKENS[1], *CLASSES, "finetune.head_lr=1e-3"], [TOKENS[0]]),
    ],
)
def test_a_setting_that_would_do_nothing_is_refused(task: list[str], unread: list[str], read: list[str]) -> None:
    """Otherwise two arms would be one computation under two names."""
    for override in [*unread, *read]:
        run = Run.of(compose(["scale=test", *task, override]))
        ((name, own),) = run.tasks.items()
        if override in read:
            run.task_type(name).check_settings(run.finetune, own.key)
            continue
        with pytest.raises(UserError, match=rf"finetune\.[\w.]+ is set, but it does nothing in tasks\.{name}"):
            run.task_type(name).check_settings(run.finetune, own.key)


def test_a_setting_that_would_do_nothing_is_refused_before_compute(
    task_folder: Path, arguments: list[str], tmp_path: Path
) -> None:
    own = ["task=sst2", f"tasks.sst2.path={task_folder}", "finetune.target_length=9"]
    with pytest.raises(UserError, match=r"finetune\.target_length is set, but it does nothing in tasks\.sst2"):
        run(compose([*arguments, *own]))
    assert not list(tmp_path.rglob("pretrain.json"))


def test_a_stride_without_windows_is_refused() -> None:
    assert compose(["scale=test", "finetune/head/windows=max", "finetune.head.windows.stride=9"])
    with pytest.raises(
        UserError, match=r"finetune\.head\.windows\.stride' does not apply to finetune/head/windows=none"
    ):
        compose(["scale=test", "finetune.head.windows.stride=9"])


XLNET = ["model=xlnet_tiny", "objective=permutation", "masking=permutation_span"]
KINDS = {  # task, folder, settings
    "values": ("stsb", "glue/stsb", []),
    "tags": (
        "wnut_17",
        "wnut_17",
        [
            "tasks.wnut_17.crf=true",
            "finetune/head=bilstm",
            "finetune/head/layers=concat",
            "finetune.head.layers.read=[1,-1]",
        ],
    ),
    "answers": (  # fifty windows per text
        "squad_v2",
        "squad_v2_devsplit",
        ["finetune/method=adapters", "finetune.method.size=4", "tasks.squad_v2.max_validation=12"],
    ),
    "values_xlnet": ("stsb", "glue/stsb", XLNET),
    "tags_xlnet": ("wnut_17", "wnut_17", [*XLNET, *BILSTM, "finetune/method=layerwise_decay"]),
    "answers_xlnet": ("squad_v2", "squad_v2_devsplit", [*XLNET, "tasks.squad_v2.max_validation=12"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_fine_tuned_kept_and_loaded(kind: str, shared: Path, arguments: list[str], tmp_path: Path) -> None:
    name, folder, extra = KINDS[kind]
    sizes = [f"tasks.{name}.max_train=32", f"tasks.{name}.max_validation=40"]
    rest = ["logger=none", "finetune.keep=true", "finetune.seeds=[0]"]
    cfg = compose([*arguments, f"task={name}", f"tasks.{name}.path={shared / folder}", *sizes, *rest, *extra])
    made = run(cfg)
    record = json.loads((made / "result.json").read_text())
    task = build(cfg.tasks[name])
    assert set(record["task_runs"][0]["metrics"]) == set(task.task_type.metrics)
    assert {f"{name}/{metric}" for metric in task.task_type.metrics} <= set(record["baselines"])
    data = Run.of(cfg).data()
    encoder = build(cfg.model).build(data.vocabulary, cfg.seed)
    checkpoint.load(encoder, made / "model")
    tuned = saved.load(made / "tuned" / f"{name}-0.safetensors", encoder)
    examples = task.examples(tmp_path)["validation"]
    rows = tuned.task_type.encode(examples, data.tokenizer, data.vocabulary, Run.of(cfg).finetune)
    outputs = []
    with torch.inference_mode():
        for at in range(len(rows.length_N)):
            outputs += list(tuned.task_type.infer(tuned.encoder, tuned.head, task_batch(rows, np.array([at]))))
    found = tuned.task_type.score(tuned.task_type.predict(outputs, rows, examples), examples)
    assert found == pytest.approx(record["task_runs"][0]["metrics"], abs=1e-4)


def test_a_model_that_writes_is_refused_where_there_are_no_words_before_compute() -> None:
    cfg = compose(["scale=test", "task=wnut_17"])
    task = build(cfg.tasks.wnut_17)
    assert task.type_for(build(cfg.model)) is task.task_type
    with pytest.raises(UserError, match=r"tasks\.wnut_17 has no text-to-text form"):
        task.type_for(build(compose(["scale=test", "model=t5_tiny"]).model))


def write(folder: Path, labels: list[Any]) -> None:
    for split in ("train", "validation"):
        table = pa.table({"sentence": [f"text {n}" for n in range(len(labels))], "label": labels})
        pq.write_table(table, folder / f"{split}.parquet")


def values(folder: Path, least: float = 0, most: float = 5) -> ValueTable:
    return ValueTable("toy", {"text": "sentence", "label": "label"}, least, most, path=str(folder))


def test_values_without_a_label_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, [0.5, None, -1.0, float("nan"), 5.0])
    assert [row.label for row in values(tmp_path).examples(tmp_path / "c")["train"]] == [0.5, 5.0]


@pytest.mark.parametrize(
    ("labels", "message"),
    [([1.0, 7.5], r"row 1 of train has the label 7\.5, not a number from 0"), (["x", "y"], "has the label 'x'"),
     (["1", "", "2.5", "x"], "row 3 of train has the label 'x', not a number from 0"),
     ([2.0, 2.0], "the same label")],
)  # fmt: skip
def test_bad_values(labels: list[Any], message: str, tmp_path: Path) -> None:
    write(tmp_path, labels)
    with pytest.raises(UserError, match=message):
        values(tmp_path).examples(tmp_path / "c")


def test_a_length_beyond_the_model_is_refused_before_compute(shared: Path, arguments: list[str]) -> None:
    cfg = compose([*arguments, "task=stsb", f"tasks.stsb.path={shared / 'glue/stsb'}", "finetune.length=9999"])
    with pytest.raises(UserError, match=r"finetune\.length=9999 exceeds model\.positions"):
        run(cfg)
