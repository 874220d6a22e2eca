"""Ensembles: logits averaged by hand, all members counted, resumed to the same bits, refused where nothing averages."""

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
from paribus.finetuning import saved
from paribus.models import checkpoint
from paribus.models.ensemble import Ensemble, mean
from paribus.models.generation import greedy
from paribus.objectives.evaluation import evaluating, predictions
from paribus.runs.folder import read_last_step
from paribus.tasks.prompts import Ragged
from paribus.training import callbacks, finetune
from paribus.training.budget import planned
from paribus.training.description import Run
from paribus.training.profile import resolve
from paribus.training.run import run
from paribus.training.stage import open_stage
from paribus.training.steps import task_batch


@pytest.fixture
def bert(arguments: list[str], task_folder: Path) -> list[str]:
    """Overrides of an encoder's run of seconds with a task of two classes."""
    return [*arguments, "task=sst2", f"tasks.sst2.path={task_folder}", "finetune.epochs=1"]


@pytest.fixture
def t5(bert: list[str]) -> list[str]:
    """The same of a text-to-text model."""
    return [*bert, *T5, "finetune.length=64"]


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def without_task(overrides: list[str]) -> list[str]:
    """The overrides that are not about the task."""
    return [text for text in overrides if not text.startswith("task")]


def writers(t5: list[str], count: int) -> tuple[Any, list[Any], Any]:
    """(the form of the task, models with heads of their own, rows of four texts)."""
    cfg = compose([*t5, "model.head=separate"])
    data, spec = Run.of(cfg).data(), build(cfg.model)
    task = build(cfg.tasks.sst2)
    task_type = task.type_for(spec)
    examples = task.examples(Path(cfg.paths.cache))["validation"][:4]
    rows = task_type.encode(examples, data.tokenizer, data.vocabulary, Run.of(cfg).finetune)
    models = [spec.build(data.vocabulary, seed).eval() for seed in range(count)]
    return (
        task_type,
        [(model, task_type.make_head(Run.of(cfg).finetune, model, seed).eval()) for seed, model in enumerate(models)],
        rows,
    )


def likeliest(task_type: Any, pairs: list[Any], rows: Any, text: int, most: int) -> list[int]:
    """Greedy decoding of one row by hand: all models are asked anew for every token, and their logits averaged."""
    start = int(rows.read.length_N[:text].sum())
    read = rows.read.ids_T[start : start + int(rows.read.length_N[text])]
    said: list[int] = []
    while len(said) < most:
        asked = replace(rows, read=Ragged.of([read]), write=Ragged.of([np.array([*said, 0])]))
        batch = task_batch(asked, np.array([0]))
        logits = [head.logits(model(batch), batch)[-1] for model, head in pairs]
        token = int(((logits[0] + logits[1] + logits[2]) / 3).argmax())
        if token == pairs[0][0].vocabulary.sep:
            break
        said.append(token)
    return said


@pytest.mark.parametrize("architecture", ["encoder_decoder", "prefix_lm"])
def test_an_ensemble_writes_by_the_mean_of_logits_token_after_token(t5: list[str], architecture: str) -> None:
    task_type, pairs, rows = writers([*t5, f"model.architecture={architecture}"], 3)
    ensemble = Ensemble(pairs)
    batch = task_batch(rows, np.arange(4))
    with torch.inference_mode():
        together = task_type.infer(ensemble, ensemble, batch)
        assert together == [likeliest(task_type, pairs, rows, text, int(batch["most"])) for text in range(4)]
        alone = [greedy(model, head, batch, int(batch["most"])) for model, head in pairs]
        one = Ensemble(pairs[:1])
        assert task_type.infer(one, one, batch) == alone[0]
    assert any(together != own for own in alone)


def test_logits_of_an_encoder_s_heads_are_averaged(bert: list[str]) -> None:
    cfg = compose(bert)
    data, spec = Run.of(cfg).data(), build(cfg.model)
    task = build(cfg.tasks.sst2)
    examples = task.examples(Path(cfg.paths.cache))["validation"][:6]
    batch = task_batch(
        task.task_type.encode(examples, data.tokenizer, data.vocabulary, Run.of(cfg).finetune), np.arange(6)
    )
    models = [spec.build(data.vocabulary, seed).eval() for seed in range(3)]
    pairs = [
        (model, task.task_type.make_head(Run.of(cfg).finetune, model, seed).eval()) for seed, model in enumerate(models)
    ]
    ensemble, one = Ensemble(pairs), Ensemble(pairs[:1])
    with torch.inference_mode():
        own = [np.stack(task.task_type.infer(model, head, batch)) for model, head in pairs]
        found = np.stack(task.task_type.infer(ensemble, ensemble, batch))
        assert np.array_equal(np.stack(task.task_type.infer(one, one, batch)), own[0])
    assert found == pytest.approx((own[0] + own[1] + own[2]) / 3, abs=1e-6)
    assert not np.allclose(own[0], own[1])


def test_the_mean_of_the_lowest_scores_is_a_number() -> None:
    lowest = torch.full((2,), torch.finfo(torch.float32).min)
    assert torch.isfinite(mean([lowest] * 4)).all()
    assert mean([torch.tensor([1.0, 4.0]), torch.tensor([3.0, 0.0])]).tolist() == [2.0, 2.0]


def test_a_run_of_an_ensemble_counts_all_members(t5: list[str]) -> None:
    alone, folder = record(run(compose(t5))), run(compose([*t5, "members=2", "finetune.ensemble=2"]))
    found = record(folder)
    assert found["pretrain_signature"] == alone["pretrain_signature"]
    assert found["signature"] != alone["signature"]
    assert found["tuned"] == {**alone["tuned"], "models": 4}
    assert found["realised"]["members"] == 2
    assert len(found["task_runs"]) == 1
    for key in ("steps", "sequences", "input_tokens", "flops"):
        assert found["budget"][key] == 2 * alone["budget"][key]
        assert planned(Run.of(compose([*t5, "members=2"]))).get(key, 0) in (0, found["budget"][key])
    assert read_last_step(folder) == 4
    assert not (folder / finetune.KEPT).exists()
    own = json.loads((folder / "members" / "1" / "pretrain.json").read_text())["metrics"]
    assert own != alone["metrics"]
    assert found["metrics"]["denoising_loss"] not in (own["denoising_loss"], alone["metrics"]["denoising_loss"])


def test_the_loss_of_members_is_that_of_their_mean_logits(t5: list[str]) -> None:
    cfg = compose([*without_task(t5), "members=2"])
    folder = run(cfg)
    data, profile = Run.of(cfg).data(), resolve(cfg.profile)
    logits, targets = [], None
    for number, place in ((0, folder), (1, folder / "members" / "1")):
        stage = open_stage(Run.of(cfg).member(number), data, profile, place)
        checkpoint.load(stage.encoder, place / "model")
        with evaluating(stage.encoder, stage.head):
            asked = list(predictions(stage.encoder, stage.head, stage.evaluation.arrays))
        logits.append(torch.cat([logits_PV for _, logits_PV in asked]))
        targets = torch.cat([batch["target_P"] for batch, _ in asked])
    by_hand = torch.nn.functional.cross_entropy((logits[0] + logits[1]) / 2, targets)
    assert record(folder)["metrics"]["denoising_loss"] == pytest.approx(float(by_hand), rel=1e-6)


def test_without_an_ensemble_a_run_keeps_its_name(bert: list[str]) -> None:
    plain = Run.of(compose(bert)).identity
    assert Run.of(compose([*bert, "members=1", "finetune.ensemble=1"])).identity == plain
    for more in ("members=2", "finetune.ensemble=2"):
        other = Run.of(compose([*bert, more])).identity
        assert other.signature != plain.signature
        assert other.pretrain == plain.pretrain
    old = dict(Run.of(compose(bert)).config)
    del old["members"]
    assert Run.of(old).identity == plain


@pytest.mark.parametrize("dies_at", ["pre-training", "fine-tuning"])
def test_a_killed_ensemble_goes_on_with_the_same_bits(
    bert: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies_at: str
) -> None:
    own = [*bert, "members=2", "finetune.ensemble=2", "model.dropout=0.1", "finetune.keep=true"]
    whole = run(compose([*own, f"run_dir={tmp_path / 'whole'}"]))
    broken = compose([*own, f"run_dir={tmp_path / 'broken'}", "profile.checkpoint_steps=1"])
    saves = callbacks.LastCheckpoint.save if dies_at == "pre-training" else saved.save
    calls = []

    def save_and_die(*given: Any) -> None:
        saves(*given)
        calls.append(given)
        if len(calls) == 3:  # the first step of the second member, the third of four fine-tunings
            raise MemoryError

    with monkeypatch.context() as patch:
        if dies_at == "pre-training":
            patch.setattr(callbacks.LastCheckpoint, "save", save_and_die)
        else:
            patch.setattr(saved, "save", save_and_die)
        with pytest.raises(MemoryError):
            run(broken)
    resumed = run(broken)
    for part in ("metrics", "task_runs", "realised", "tuned"):
        assert record(resumed)[part] == record(whole)[part]
    weights = sorted(path.relative_to(whole) for path in whole.rglob("*.safetensors"))
    assert len(weights) == 6
    assert all((resumed / path).read_bytes() == (whole / path).read_bytes() for path in weights)
    tuned = [(whole / path).read_bytes() for path in weights if path.parts[0] == finetune.KEPT]
    assert len(set(tuned)) == 4


def tagged(folder: Path) -> Path:
    """A tagging task of two words a sentence."""
    for split in ("train", "validation"):
        (folder / f"{split}.jsonl").write_text('{"tokens": ["the", "sailor"], "ner_tags": [0, 9]}\n')
    return folder


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["members=0"], "members=0 is not a number of models"),
        (["finetune.ensemble=1.5"], "finetune.ensemble=1.5 has the wrong type: give a whole number"),
        (["finetune.ensemble=2", "task=none"], "finetune.ensemble=2, but there is no task"),
        (
            ["members=2", "evaluation.probe_examples=8"],
            "can be asked for nsp_probe_accuracy, sop_probe_accuracy",
        ),
        (["members=2", "objective=mlm_nsp", "input=segment_pair"], "only a single model can be asked for nsp_accuracy"),
        (
            ["finetune.ensemble=2", "task=wnut_17", "tasks.wnut_17.crf=true"],
            "tasks.wnut_17.crf=true does not work with an ensemble",
        ),
        (["finetune.ensemble=2", "finetune.epochs=0", *T5, "finetune.length=64"], "is the same model 2 times"),
    ],
)
def test_what_makes_no_ensemble_is_one_line_before_any_step(
    bert: list[str], tmp_path: Path, changes: list[str], said: str, refused_run: Callable[..., str]
) -> None:
    if "task=wnut_17" in changes:
        changes = [*changes, f"tasks.wnut_17.path={tagged(tmp_path)}"]
    given = without_task(bert) if any(text.startswith("task=") for text in changes) else bert
    assert said in refused_run(*given, *changes)
