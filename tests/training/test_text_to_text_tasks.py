"""Tasks in words on text-to-text models: from config to record, greedy decoding, what is refused before compute."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from text_to_text import T5

from paribus.core.build import build
from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.finetuning import saved
from paribus.models import checkpoint
from paribus.models.generation import greedy
from paribus.models.t5 import ARCHITECTURES
from paribus.optim.adafactor import Adafactor
from paribus.tasks.prompts import Ragged
from paribus.training.checks import check_run
from paribus.training.description import Run
from paribus.training.profile import resolve
from paribus.training.run import run
from paribus.training.stage import open_stage
from paribus.training.steps import task_batch


@pytest.fixture
def t5(arguments: list[str], task_folder: Path) -> list[str]:
    """Overrides of a text-to-text run of seconds with a task of two labels."""
    return [*arguments, *T5, "task=sst2", f"tasks.sst2.path={task_folder}", "finetune.length=64"]


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_task_in_words_has_a_record(t5: list[str], architecture: str) -> None:
    found = record(run(compose([*t5, f"model.architecture={architecture}", "finetune.seeds=[0,1]"])))
    assert found["status"] == "done"
    assert [each["seed"] for each in found["task_runs"]] == [0, 1]
    for each in found["task_runs"]:
        metrics = each["metrics"]
        assert set(metrics) == {"accuracy", "unknown_rate"}
        assert metrics["accuracy"] <= 1 - metrics["unknown_rate"]
    assert found["baselines"]["sst2/accuracy"]["majority"] == 0.5
    assert 0 <= found["metrics"]["sst2/unknown_rate"] <= 1


@pytest.mark.slow
def test_a_model_learns_to_write_labels(t5: list[str]) -> None:
    own = ["model.dropout=0", "finetune.epochs=30", "finetune.batch_size=16"]
    metrics = record(run(compose([*t5, *own, "finetune.optimizer.lr=2e-3"])))["metrics"]
    assert metrics["sst2/unknown_rate"] == 0.0
    assert metrics["sst2/accuracy"] >= 0.9


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_greedy_decoding_is_the_likeliest_token_after_token(t5: list[str], architecture: str, tmp_path: Path) -> None:
    cfg = compose([*t5, f"model.architecture={architecture}", "model.head=separate"])
    data, model_spec = Run.of(cfg).data(), build(cfg.model)
    task = build(cfg.tasks.sst2)
    task_type = task.type_for(model_spec)
    examples = task.examples(Path(cfg.paths.cache))["validation"][:5]
    rows = task_type.encode(examples, data.tokenizer, data.vocabulary, Run.of(cfg).finetune)
    model = model_spec.build(data.vocabulary, 3).eval()
    head: Any = task_type.make_head(Run.of(cfg).finetune, model, 0)
    with torch.inference_mode():
        found = greedy(model, head, task_batch(rows, np.arange(5)), 6)
        for row, ids in enumerate(found):
            assert 0 < len(ids) <= 6
            guessed = targets_of([*ids, data.vocabulary.sep], rows, row)
            batch = task_batch(guessed, np.array([0]))
            best = head.logits(model(batch), batch).argmax(-1).tolist()
            assert best[: min(len(ids) + 1, 6)] == [*ids, data.vocabulary.sep][:6]


def test_tasks_are_fine_tuned_by_the_optimizer_of_t5(t5: list[str]) -> None:
    own = ["optimizer@finetune.optimizer=adafactor", "finetune.optimizer.lr=1e-3", "finetune.clip=null"]
    cfg = compose([*t5, *own, "lr_schedule@finetune.lr_schedule=constant"])
    assert build(cfg.finetune.optimizer) == Adafactor(lr=1e-3)
    assert record(run(cfg))["status"] == "done"


def targets_of(ids: list[int], rows: Any, row: int) -> Any:
    """The row with what was written as its target: teacher forcing over it must say the same."""
    start = int(rows.read.length_N[:row].sum())
    read = rows.read.ids_T[start : start + int(rows.read.length_N[row])]
    return replace(rows, read=Ragged.of([read]), write=Ragged.of([np.array(ids)]))


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        (["finetune.target_length=2"], "cuts the label"),
        (["finetune.target_length=1"], "at least 2"),
        (["finetune.length=8"], "leaves no room for text"),
        (["finetune/head/pooling=mean"], "does nothing in tasks.sst2"),
        (["finetune/method=frozen"], "leaves nothing to train"),
        (["finetune/method=top_k_layers", "finetune.method.k=3"], "exceeds the model's 2 layers"),
    ],
)
def test_what_cannot_be_written_is_refused_before_any_step(t5: list[str], changes: list[str], match: str) -> None:
    cfg = compose([*t5, *changes])
    described, profile = Run.of(cfg), resolve(cfg.profile)

    def check() -> None:
        check_run(described, profile)
        open_stage(described, described.data(), profile, Path(cfg.paths.runs))

    with pytest.raises(UserError, match=match):
        check()


@pytest.mark.parametrize(
    ("method", "head", "share"),
    [([], "separate", 1.0), (["finetune/method=adapters_t5", "finetune.method.size=4"], "tied", 0.01)],
)
def test_a_text_task_from_a_folder(
    method: list[str], head: str, share: float, arguments: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "copying"
    folder.mkdir()
    for split, count in (("train", 12), ("validation", 6)):
        lines = [json.dumps({"source": f"the old house {n}", "target": f"house {n}"}) for n in range(count)]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    own = ["task=text_table", f"tasks.text_table.path={folder}", "finetune.target_length=8", "finetune.keep=true"]
    own += ["finetune.length=64", "tasks.text_table.metrics=[rougeL,bleu,f1,exact_match]"]
    cfg = compose([*arguments, *T5, *own, *method, f"model.head={head}"])
    made = run(cfg)
    found = record(made)
    assert share / 2 < found["tuned"]["trained_share"] <= share
    assert set(found["task_runs"][0]["metrics"]) == {"rougeL", "bleu", "f1", "exact_match"}
    assert found["baselines"]["text_table/exact_match"]["bag_of_words"] == 1.0
    model = build(cfg.model).build(Run.of(cfg).data().vocabulary, cfg.seed)
    checkpoint.load(model, made / "model")
    tuned = saved.load(made / "tuned" / "text_table-0.safetensors", model)
    task = build(cfg.tasks.text_table)
    examples = task.examples(Path(cfg.paths.cache))["validation"]
    data = Run.of(cfg).data()
    rows = tuned.task_type.encode(examples, data.tokenizer, data.vocabulary, Run.of(cfg).finetune)
    with torch.inference_mode():
        outputs = tuned.task_type.infer(tuned.encoder, tuned.head, task_batch(rows, np.arange(6)))
    again = tuned.task_type.score(tuned.task_type.predict(outputs, rows, examples), examples)
    assert again == pytest.approx(found["task_runs"][0]["metrics"])


def test_an_encoder_that_reads_from_the_right_is_refused_what_is_to_be_written(arguments: list[str]) -> None:
    cfg = compose([*arguments, "task=multi30k", "model.attention=right"])
    with pytest.raises(UserError, match="multi30k needs a model that writes text"):
        build(cfg.tasks.multi30k).type_for(build(cfg.model))


def test_empty_targets_are_refused(tmp_path: Path, arguments: list[str]) -> None:
    for split in ("train", "validation"):
        (tmp_path / f"{split}.jsonl").write_text('{"source": "a", "target": "b"}\n{"source": "c", "target": " "}\n')
    cfg = compose([*arguments, *T5, "task=text_table", f"tasks.text_table.path={tmp_path}"])
    with pytest.raises(UserError, match="row 1 of train has no text in column 'target'"):
        build(cfg.tasks.text_table).examples(Path(cfg.paths.cache))


ENCODER = [
    "model=bert_tiny",
    "input=full_sentences",
    "masking=bernoulli",
    "objective=mlm",
    "tokenizer=wordpiece",
    "tokenizer.vocab_size=150",
]
RIGHT = ["objective=clm_right", "masking=none", "model.attention=right"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["masking=iid", "masking.rate=0.5", "tokenizer.sentinels=4"], "but tokenizer.sentinels=4"),
        (["tokenizer.sentinels=0"], "tokenizer.sentinels=0"),
        (["tokenizer.sentinels=-1"], "tokenizer.sentinels=-1"),
        *(([f"masking={kind}", "masking.rate=0"], "masking.rate=0") for kind in ("iid", "random_spans", "fragment")),
        *(([f"masking={kind}", "masking.rate=1"], "masking.rate=1") for kind in ("iid", "random_spans", "deletion")),
        (["masking=iid", "masking.rate=0.01"], "masking.rate=0.01 of"),
        (["masking.mean_length=10"], "masking.mean_length=10 is longer than the noise"),
        (["model=bert_tiny"], "the objective writes text, but the model is an encoder"),
        (
            [*ENCODER, *RIGHT, "task=text_table", "tasks.text_table.path=PLACE/whole"],
            "needs a model that writes text, which this encoder cannot",
        ),
        (["task=text_table", "tasks.text_table.path=PLACE"], "row 1 of train has no text in column 'target'"),
    ],
)
def test_what_cannot_be_read_or_written_is_one_line_before_any_step(
    arguments: list[str], changes: list[str], said: str, tmp_path: Path, refused_run: Callable[..., str]
) -> None:
    for split in ("train", "validation"):
        (tmp_path / f"{split}.jsonl").write_text('{"source": "a", "target": "b"}\n{"source": "c", "target": " "}\n')
        (whole := tmp_path / "whole").mkdir(exist_ok=True)
        (whole / f"{split}.jsonl").write_text('{"source": "a", "target": "b"}\n{"source": "c", "target": "d"}\n')
    own = [text.replace("PLACE", str(tmp_path)) for text in changes]
    given = [text for text in arguments if not text.startswith("tokenizer")]
    assert said in refused_run(*given, *T5, *own)
