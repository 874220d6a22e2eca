"""Evaluations that an objective declares: with memory, of its own, over its own targets and under its own name."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fake_records import design
from omegaconf import OmegaConf

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.models import checkpoint
from paribus.models.heads.head import summed_cross_entropy
from paribus.reports.tables.build import assemble
from paribus.reports.tables.files import render_texts
from paribus.runs.record import read_record
from paribus.training.description import Run
from paribus.training.profile import resolve
from paribus.training.run import run
from paribus.training.stage import Stage, open_stage
from paribus.verdict import metrics
from paribus.verdict.metrics import METRICS


@pytest.fixture
def config(arguments: list[str], trust: Callable[..., None]) -> Callable[..., Any]:
    """A function that composes a run of the toys: its model, its objective and overrides."""
    trust("toys_evaluation")

    def given(model: str, objective: str, *more: str) -> Any:
        cfg = compose([*arguments, "objective=clm", "masking=none", "input.length=32", *more])
        OmegaConf.set_struct(cfg, False)
        cfg.model = OmegaConf.create({"_target_": f"toys_evaluation.{model}", "hidden": 16})
        cfg.objective._target_ = f"toys_evaluation.{objective}"
        if model == "Gated":
            cfg.input._target_ = "toys_evaluation.Contiguous"
        return cfg

    return given


def open_trained(cfg: Any, folder: Path) -> Stage:
    """The stage of a finished run, with the weights of its checkpoint."""
    described = Run.of(cfg)
    stage = open_stage(described, described.data(), resolve(described.profile), folder)
    checkpoint.load(stage.encoder, folder / "model")
    checkpoint.load_head(stage.encoder, stage.head, folder / "model")
    return stage


def test_a_memory_reads_on_through_the_held_out_text(config: Callable[..., Any]) -> None:
    cfg = config("Gated", "StreamLM", "evaluation.examples=7", "optimizer.lr=0.05")
    found = json.loads(((folder := run(cfg)) / "result.json").read_text())
    stage = open_trained(cfg, folder)
    arrays = stage.evaluation.arrays
    assert len(arrays) == 7
    assert [bool(each["begins_B"][0]) for each in arrays] == [True] + [False] * 6
    rows = [each["ids_BL"][0, : each["length_B"][0]] for each in arrays]
    starts = np.cumsum([0, *map(len, rows[:-1])])
    slot_P = np.concatenate([each["slot_P"] + start for each, start in zip(arrays, starts, strict=True)])
    ids_BL = torch.from_numpy(np.concatenate(rows))[None]
    with torch.no_grad():
        outputs = stage.encoder({"ids_BL": ids_BL, "length_B": torch.tensor([ids_BL.shape[1]])})
        logits_PV = stage.head.logits(outputs, {"slot_P": torch.from_numpy(slot_P)})
        total = summed_cross_entropy(logits_PV, torch.from_numpy(stage.evaluation.targets))
    assert found["metrics"]["clm_loss"] == pytest.approx(float(total) / len(slot_P), abs=1e-5)
    assert abs(found["metrics"]["memory_gain"]) > 1e-5
    assert found["baselines"]["memory_gain"] == {"no_memory": 0.0}
    assert stage.in_distribution is not None
    assert stage.in_distribution.held_out is not None
    assert all("begins_B" in each for each in stage.in_distribution.held_out.arrays)


def test_a_metric_of_two_evaluations_is_refused(config: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toys_evaluation.MemoryGain.metrics", ("clm_loss",))
    with pytest.raises(UserError, match="two evaluations of the objective measure clm_loss"):
        run(config("Gated", "StreamLM"))


def test_a_measurement_that_is_not_finite_has_diverged(
    config: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toys_evaluation.MemoryGain.measure", lambda *_: {"memory_gain": float("nan")})
    found = json.loads((run(config("Gated", "StreamLM")) / "result.json").read_text())
    assert found["status"] == "diverged"
    assert "memory_gain" in found["error"]


@pytest.fixture
def center_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The one file that makes `center_loss` a column."""
    METRICS.all()
    monkeypatch.setattr(METRICS, "_items", dict(METRICS._items))
    text = (
        'from paribus.verdict.metrics import METRICS, Metric\n\nMETRICS.add(Metric("center_loss", held_out_loss=True))'
    )
    (tmp_path / "center_loss.py").write_text(text)
    monkeypatch.setattr(metrics, "__path__", [*metrics.__path__, str(tmp_path)])
    yield
    del sys.modules["paribus.verdict.metrics.center_loss"]


@pytest.mark.usefixtures("center_loss")
def test_targets_on_every_token_are_a_column_of_their_own(config: Callable[..., Any], tmp_path: Path) -> None:
    cfgs = {
        (arm, seed): config("Beside", "EveryToken", "study=toy", f"arm={arm}", f"optimizer.lr={rate}", f"seed={seed}")
        for arm, rate in (("one", 0.001), ("two", 0.02), ("three", 0.1))
        for seed in (0, 1)
    }
    for (arm, _), cfg in cfgs.items():
        cfg.objective.what = "some other tokens" if arm == "three" else "every token"
    first, _ = read_record(run(cfgs["one", 0]) / "result.json")
    assert first is not None
    assert first.targets["center_loss"]["what"] == "every token"
    assert first.targets["center_loss"]["places"] > 100
    assert 1.0 < first.own["floor"] < first.own["loss"]  # it does not see the answer
    for cfg in cfgs.values():
        run(cfg)
    asked = design(
        study="toy",
        scale="test",
        baseline="one",
        columns=("center_loss", "center_accuracy", "mlm_loss"),
        arms={"one": [], "two": [], "three": []},
        varies=("optimizer.lr",),
        claims=("two > one on center_loss",),
        seeds=(0, 1),
        published={},
        audit={},
        sweep_hash=None,
    )
    table = assemble(asked, [tmp_path / "runs"])
    assert table.columns == ("center_loss", "center_accuracy")
    reason = table.about["center_loss"].reason
    assert reason is not None
    assert reason.startswith("too small to decide")
    assert not table.about["center_loss"].higher_is_better
    assert table.curves["validation/center_loss"].keys() == {"one", "two"}
    assert "center_loss" not in table.arms[2].metrics
    assert "center_loss ↓ †" in render_texts(table)["table.md"]
