"""Memory: it passes where a batch says where rows begin, it survives an interruption, and fine-tuning has none."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf
from safetensors.torch import load_file
from toy_training import assert_resumes, batch_of, fit, learner_of, network_of
from toys_memory import Cells, Recurrent, RecurrentNetwork

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.corruption.views.replace import Replace
from paribus.finetuning.method import Full
from paribus.models.network import Batch, Outputs, initialize
from paribus.objectives.mlm import MaskedLM
from paribus.optim.adamw import AdamW
from paribus.optim.lr_schedule import Schedule
from paribus.training import callbacks
from paribus.training.learner import Finetuning, Pretraining
from paribus.training.memory import change_tensors
from paribus.training.run import run


@dataclass
class Notes:
    """A state that is a dataclass, with a NamedTuple inside."""

    cells: Cells
    steps: int


class NotingNetwork(RecurrentNetwork):
    """Keeps what it was given, and carries `Notes`."""

    def __init__(self, spec: Recurrent, vocabulary: Any) -> None:
        super().__init__(spec, vocabulary)
        self.given: list[Any] = []

    def forward(self, batch: Batch, state: Any = None) -> Outputs:
        self.given.append(state)
        outputs = super().forward(batch, state and state.cells)
        return outputs._replace(state=Notes(outputs.state, 1 + (state.steps if state else 0)))


class Noting(Recurrent):
    def build(self, vocabulary: Any, seed: int) -> NotingNetwork:
        network = NotingNetwork(self, vocabulary)
        initialize(network, seed, network.std)
        return network


def test_a_recurrent_network_trains_on_streams_and_resumes(
    arguments: list[str],
    task_folder: Path,
    tmp_path: Path,
    trust: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trust("toys_memory")

    def config(name: str, *more: str) -> Any:
        overrides = ["objective=clm", "masking=none", "trainer.max_steps=6", "task=sst2", "finetune.batch_size=24"]
        folders = [f"run_dir={tmp_path / name}", f"tasks.sst2.path={task_folder}"]
        cfg = compose([*arguments, *overrides, *folders, *more])
        OmegaConf.set_struct(cfg, False)
        cfg.model = OmegaConf.create({"_target_": "toys_memory.Recurrent", "hidden": 16})
        cfg.input._target_ = "toys_memory.Streams"
        return cfg

    whole = run(config("whole"))
    broken = config("broken", "profile.checkpoint_steps=2")
    save = callbacks.LastCheckpoint.save

    def save_and_die(self: callbacks.LastCheckpoint, trainer: Any) -> None:
        save(self, trainer)
        if trainer.global_step == 4:
            raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(callbacks.LastCheckpoint, "save", save_and_die)
        with pytest.raises(MemoryError):
            run(broken)
    assert "carried" in torch.load(tmp_path / "broken" / callbacks.LAST, weights_only=True)
    resumed = run(broken)
    wanted = load_file(whole / "model" / "model.safetensors")
    for name, weight in load_file(resumed / "model" / "model.safetensors").items():
        assert torch.equal(weight, wanted[name]), name
    assert {"clm_loss", "sst2/accuracy"} <= json.loads((whole / "result.json").read_text())["metrics"].keys()


def test_states_of_named_tuples_and_dataclasses_are_detached_and_resume(tmp_path: Path) -> None:
    steps = [[batch_of(n)] for n in range(4)]
    whole, resumed = assert_resumes(Noting(16), MaskedLM(Replace()), steps, tmp_path / "cut.ckpt")
    given: list[Any] = whole.encoder.given  # type: ignore[assignment]
    seen: list[Any] = resumed.encoder.given  # type: ignore[assignment]
    assert [notes and notes.steps for notes in given] == [None, 1, 2, 3]
    assert not any(notes.cells.cell_NBD.requires_grad for notes in given[1:])
    assert torch.equal(seen[0].cells.cell_NBD, given[2].cells.cell_NBD)


def test_a_state_of_an_undeclared_class_is_refused() -> None:
    cells = Cells(torch.zeros(1), torch.zeros(1))
    with pytest.raises(UserError, match=r"state_classes = \(Cells,\)"):
        change_tensors({"cells": cells}, torch.Tensor.detach)
    with pytest.raises(UserError, match="class set cannot be carried to the next step: use tensors in dicts, lists or"):
        change_tensors([{torch.zeros(1)}], torch.Tensor.detach)


def test_a_batch_without_marks_gets_no_memory() -> None:
    bare = [{name: value for name, value in batch_of(n).items() if name != "begins_B"} for n in range(2)]
    learner = noting_learner(3)
    fit(learner, [[batch_of(0)], [bare[0]], [bare[1]]], 3)
    assert learner.encoder.given == [None, None, None]


def test_rows_that_change_in_number_carry_no_memory_or_are_refused() -> None:
    every = {"begins_B": torch.ones(3, dtype=torch.bool)}
    learner = noting_learner(2)
    fit(learner, [[batch_of(0, 4)], [batch_of(1, 3) | every]], 2)
    assert learner.encoder.given == [None, None]
    with pytest.raises(UserError, match="a batch of 4 rows is followed by one of 3"):
        fit(noting_learner(2), [[batch_of(0, 4)], [batch_of(1, 3)]], 2)


def test_finetuning_carries_no_memory_and_takes_a_smaller_last_batch() -> None:
    network = network_of(Noting(16))
    objective = MaskedLM(Replace()).build(network, network.vocabulary, 7)
    settings: dict[str, Any] = {"total_steps": 2, "total_tokens": 0, "clip": 1.0, "seed": 1, "method": Full()}
    learner: Any = Finetuning(network, objective, AdamW(lr=0.01), Schedule("constant"), **settings)
    fit(learner, [[batch_of(0, 4)], [batch_of(1, 3)]], 2)
    assert learner.encoder.given == [None, None]


def noting_learner(total: int) -> Any:
    network = network_of(Noting(16))
    learner: Pretraining = learner_of(network, MaskedLM(Replace()).build(network, network.vocabulary, 7), total)
    return learner
