"""Text-to-text runs: from text to record, on every architecture; refused where model and objective do not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from text_to_text import T5

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.models.t5 import ARCHITECTURES, SINGLE
from paribus.training.budget import planned, train_flops
from paribus.training.description import Run
from paribus.training.profile import resolve
from paribus.training.run import run
from paribus.training.stage import open_stage


@pytest.fixture
def t5(arguments: list[str]) -> list[str]:
    """Overrides of a text-to-text run of seconds."""
    return [*arguments, *T5]


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_record_holds_what_was_read_and_written(t5: list[str], architecture: str) -> None:
    cfg = compose([*t5, f"model.architecture={architecture}"])
    found = record(run(cfg))
    budget, metrics = found["budget"], found["metrics"]
    assert found["status"] == "done"
    assert budget["steps"] == 2
    assert budget["target_tokens"] == budget["predicted_tokens"] > 0
    single = architecture in SINGLE
    read = budget["input_tokens"] - (budget["target_tokens"] if single else 0)
    assert read == 8 * 32  # two steps of four rows that fill the budget
    assert budget["raw_tokens"] > read - 16
    assert metrics["denoising_perplexity"] == pytest.approx(np.exp(metrics["denoising_loss"]), rel=1e-6)
    assert found["baselines"]["denoising_loss"]["unigram"] > 0
    assert found["realised"]["corruption_rate"] == pytest.approx(0.15, abs=0.02)
    assert found["realised"]["padding_share"] == 0.0
    size = 100 + 100
    expected = train_flops(Run.of(cfg), size, budget["input_tokens"], budget["predicted_tokens"], budget["sequences"])
    assert budget["flops"] == pytest.approx(expected)
    assert planned(Run.of(cfg))["flops"] == pytest.approx(expected, rel=0.01)


def test_every_arm_is_asked_the_same(t5: list[str], tmp_path: Path) -> None:
    targets = []
    for change in ("masking.rate=0.5", "masking=iid", "objective/targets=full"):
        cfg = compose([*t5, change])
        data, profile = Run.of(cfg).data(), resolve(cfg.profile)
        targets.append(open_stage(Run.of(cfg), data, profile, tmp_path).evaluation.targets)
    assert all(np.array_equal(found, targets[0]) for found in targets)


def test_the_unigram_model_knows_how_often_sentinels_come(t5: list[str], tmp_path: Path) -> None:
    cfg = compose(t5)
    data = Run.of(cfg).data()
    stage = open_stage(Run.of(cfg), data, resolve(cfg.profile), tmp_path)
    found = stage.evaluation.unigram(data.stores["train"].ids, data.vocabulary)["denoising_loss"]
    targets = stage.evaluation.targets
    special = np.isin(targets, data.vocabulary.specials)
    assert special.any()
    best = np.bincount(targets, minlength=data.vocabulary.size) / len(targets)
    entropy = float(-np.log(best[targets]).mean())
    assert entropy < found < entropy + 2.0


@pytest.mark.slow
def test_a_loss_falls(t5: list[str], tmp_path: Path) -> None:
    folder = run(compose([*t5, "trainer.max_steps=150", "trainer.log_every=1", "model.dropout=0", "batch.size=8"]))
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    losses = [line["train/denoising_loss"] for line in lines if "train/denoising_loss" in line]
    assert np.mean(losses[-10:]) < np.mean(losses[:10]) - 1.0


@pytest.mark.parametrize("optimizer", ["adafactor", "adamw", "adamw_rms"])
def test_an_interrupted_run_ends_with_the_same_bits(
    t5: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, optimizer: str
) -> None:
    from paribus.training import callbacks

    own = [*t5, f"optimizer={optimizer}", "trainer.max_steps=5", "profile.microbatch=2"]
    whole = run(compose([*own, f"run_dir={tmp_path / 'whole'}"]))
    save = callbacks.LastCheckpoint.save

    def save_and_die(self: callbacks.LastCheckpoint, trainer: Any) -> None:
        save(self, trainer)
        raise MemoryError

    broken = compose([*own, f"run_dir={tmp_path / 'broken'}", "profile.checkpoint_steps=3"])
    with monkeypatch.context() as patch:
        patch.setattr(callbacks.LastCheckpoint, "save", save_and_die)
        with pytest.raises(MemoryError):
            run(broken)
    resumed = run(broken)
    files = [folder / "model" / "model.safetensors" for folder in (whole, resumed)]
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        (["model=bert_tiny"], "the objective writes text, but the model is an encoder"),
        (["input=full_sentences", "objective=mlm", "masking=bernoulli"], "predicts in place, but the model writes"),
        (["tokenizer.sentinels=0"], "sentinels"),
        (["masking.rate=0"], "masking"),
        (["masking.rate=1"], "masking"),
        (["masking.mean_length=20"], "masking"),
        (
            ["model.architecture=prefix_lm", "masking=fragment", "objective/targets=fragment"],
            "separate decoder",
        ),
        (["masking.rate=0.5", "masking.mean_length=1", "input.length=512"], "sentinels"),
    ],
)
def test_what_does_not_fit_is_refused_before_any_step(t5: list[str], changes: list[str], match: str) -> None:
    with pytest.raises(UserError, match=match):
        run(compose([*t5, *changes]))
