"""The vanilla character transformer: what predicts, until when, and what a row holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.nn.functional import cross_entropy, layer_norm

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.corruption.collators.stream import StreamCollator
from paribus.corruption.examples import Examples
from paribus.models.heads.auxiliary import LowerLayersHead, find_alive
from paribus.models.heads.head import name_places
from paribus.models.network import as_batch
from paribus.training import callbacks
from paribus.training.description import Run
from paribus.training.profile import resolve
from paribus.training.run import run
from paribus.training.stage import Stage, open_stage
from paribus.training.streams import training_examples

PLAIN = ["objective.every_layer=false", "objective.second_weight=0"]


@pytest.fixture
def config(arguments: list[str]) -> Callable[..., Any]:
    rest = [each for each in arguments if not each.startswith("tokenizer")]
    named = ["tokenizer=characters", "tokenizer.vocab_size=512", "objective=char_lm", "input=random_windows"]
    shape = ["model.attention=left", "masking=none", "model/position=learned_layers", "input.length=16"]
    return lambda *more: compose([*rest, *named, *shape, *more])


@pytest.fixture
def opened(config: Callable[..., Any], tmp_path: Path) -> Callable[..., Stage]:
    def open_with(*more: str) -> Stage:
        described = Run.of(config(*more))
        return open_stage(described, described.data(), resolve(described.profile), tmp_path)

    return open_with


def test_layers_stop_one_after_the_other_until_half_of_the_training() -> None:
    assert find_alive(64, 0.10) == list(range(13, 64))
    assert find_alive(64, 0.25) == list(range(33, 64))
    assert find_alive(64, 0.0) == list(range(1, 64))
    assert find_alive(64, 0.5) == []


@pytest.mark.parametrize(("last", "second"), [(False, False), (False, True), (True, True), (True, False)])
def test_a_row_holds_its_targets(last: bool, second: bool, opened: Callable[..., Stage]) -> None:
    described = opened(f"objective.every_position={not last}", f"objective.second_weight={0.5 * second}").run
    examples: Examples = training_examples(described, described.data())
    batch, ids_T = examples.batch(0, range(3)), np.asarray(examples.store.ids)
    assert batch["ids_BL"].shape == (3, 16)
    index: Any = examples.index(0)
    wanted = index.start_N[:3, None] + np.arange(16)
    assert np.array_equal(batch["ids_BL"], ids_T[wanted])
    asked = wanted[:, -1:] if last else wanted
    assert np.array_equal(batch["target_P"], ids_T[asked + 1].reshape(-1))
    assert ("second_P" in batch) == second
    if second:
        assert np.array_equal(batch["second_P"], ids_T[asked + 2].reshape(-1))


def test_the_loss_is_that_of_every_layer_and_both_targets(opened: Callable[..., Stage]) -> None:
    stage = opened("model.layers=4", "model.dropout=0", "model.attention_dropout=0")
    described, network, objective = stage.run, stage.encoder, stage.objective
    batch = as_batch(training_examples(described, described.data()).batch(0, range(4)))
    head = objective.named_heads["layers"]
    assert isinstance(head, LowerLayersHead)
    with torch.no_grad():
        states = [state.flatten(0, 1) for state in network.states(batch)]
        at_start, _ = objective(network, batch)
        wanted = 0.0
        for layer in (1, 2, 3):
            state_PD = layer_norm(states[layer], (network.width,))
            classifiers: Any = head.classifiers[layer - 1]
            next_PV, second_PV = (classifier(state_PD) for classifier in classifiers)
            wanted += float(cross_entropy(next_PV, batch["target_P"], reduction="sum"))
            wanted += 0.5 * float(cross_entropy(second_PV, batch["second_P"], reduction="sum"))
        assert float(at_start["layers"]) == pytest.approx(wanted, rel=1e-5)
        assert objective.weights["second"] == 0.5
        objective.begin_step(0.3)  # layers 1 and 2 of 4 have stopped, at 1/8 and 1/4
        later, _ = objective(network, batch)
        assert 0.2 < float(later["layers"]) / wanted < 0.45
        assert "layers" in name_places([head], batch)
        objective.begin_step(0.5)
        assert float(objective(network, batch)[0]["layers"]) == 0.0
        assert "layers" not in name_places([head], batch)
        assert at_start["clm"] == objective(network, batch)[0]["clm"]


def test_only_what_is_asked_for_is_there_and_the_main_weights_are_the_same(opened: Callable[..., Stage]) -> None:
    full, plain = opened(), opened(*PLAIN)
    assert set(full.objective.heads) == {"clm", "second", "layers"}
    assert set(plain.objective.heads) == {"clm"}
    assert set(opened("objective.cutoffs=[10]").objective.heads) == {"clm", "second", "layers"}
    for name, weight in plain.objective.heads["clm"].state_dict().items():
        assert torch.equal(weight, full.objective.heads["clm"].state_dict()[name])


def test_windows_lie_anywhere_and_are_drawn_anew(opened: Callable[..., Stage]) -> None:
    described = opened().run
    examples = training_examples(described, described.data())
    first, second = (examples.index(epoch) for epoch in (0, 1))
    starts: Any = [index.start_N for index in (first, second)]  # type: ignore[attr-defined]
    tokens = described.data().stores["train"].tokens
    assert len(starts[0]) == tokens // 18
    assert not np.array_equal(*starts)
    assert len(set((starts[0] % 18).tolist())) > 10
    assert 0 <= starts[0].min() < tokens / 10
    assert tokens * 0.9 < starts[0].max() + 18 <= tokens
    again = training_examples(described, described.data()).index(0)
    assert np.array_equal(starts[0], again.start_N)  # type: ignore[attr-defined]


def test_a_run_resumes_to_the_same_bits(
    config: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def give(name: str) -> Any:
        steps = [
            "trainer.max_steps=6",
            "objective.spans=[1]",
            "objective.slid_tokens=40",
            "profile.checkpoint_steps=1",
            "model.layers=4",
        ]
        return config(*steps, f"run_dir={tmp_path / name}")

    whole = run(give("whole"))
    save = callbacks.LastCheckpoint.save

    def killed(self: Any, trainer: Any, *rest: Any) -> None:
        save(self, trainer, *rest)
        if trainer.global_step == 2:
            raise MemoryError

    monkeypatch.setattr(callbacks.LastCheckpoint, "save", killed)
    with pytest.raises(MemoryError):
        run(give("broken"))
    monkeypatch.undo()
    resumed = run(give("broken"))
    weights = [load_file(folder / "model" / "model.safetensors") for folder in (whole, resumed)]
    assert all(torch.equal(weight, weights[1][name]) for name, weight in weights[0].items())
    record = json.loads((whole / "result.json").read_text())
    assert record["metrics"]["bits_per_character"] > 0
    assert record["targets"]["init_loss"]["places"] == 40
    assert record["targets"]["bits_per_character"]["what"] == "the raw text"


def test_bad_settings_are_refused(config: Callable[..., Any], refused_run: Callable[..., str]) -> None:
    with pytest.raises(UserError, match=r"set objective\.late=false"):
        Run.of(config("objective.late=true", "objective.every_position=false"))
    said = refused_run("objective=char_lm", "masking=none", "model.attention=left")
    assert "input=streams or input=windows" in said
    with pytest.raises(UserError, match="second_weight"):
        Run.of(config("objective.second_weight=-1"))


def test_streams_leave_out_no_token_if_rows_hold_two_targets(opened: Callable[..., Stage]) -> None:
    described = opened("input=streams").run
    examples = training_examples(described, described.data())
    order = described.input.arrange(examples, 0, 2, None)
    blocks = [block for step in range(3) for block in order.blocks(step)]
    starts: Any = [order.examples.index(0).start_N[rows] for _, rows in blocks]  # type: ignore[attr-defined]
    assert (np.diff(np.stack(starts), axis=0) == 16).all()
    assert isinstance(examples.collator, StreamCollator)
