"""Chain-thaw: the head alone, each layer alone from the bottom, then everything."""

from __future__ import annotations

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from test_finetuning_methods import TASK, backbone, config, rows

from paribus.finetuning.method import HEAD, ChainThaw
from paribus.training.description import Run
from paribus.training.finetune import finetuner
from paribus.training.steps import StepData
from paribus.training.trainer import resolve, trainer


def test_stages_are_equal_pieces_from_the_head_over_the_layers_to_all() -> None:
    method = ChainThaw()
    assert [method.stage(2, done) for done in (0.0, 0.19, 0.2, 0.4, 0.6, 0.8, 0.999)] == [HEAD, HEAD, 0, 1, 2, 3, 3]
    shares = np.arange(600) / 600
    assert set(np.unique([method.stage(3, done) for done in shares], return_counts=True)[1]) == {100}


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_in_each_stage_only_its_own_weights_change(norm: str) -> None:
    cfg = config("finetune/method=chain_thaw", "finetune.batch_size=4", "finetune.epochs=5", norm=norm)
    learner, steps = finetuner(Run.of(cfg), backbone(cfg), rows(), TASK.task_type, 7)
    moved: list[set[int]] = []

    class Watch(pl.Callback):
        def __init__(self) -> None:
            self.before = {name: p.detach().clone() for name, p in learner.named_parameters()}

        def on_train_batch_end(self, *unused: object) -> None:
            named = {name: p.detach().clone() for name, p in learner.named_parameters()}
            changed = [name for name, p in named.items() if not torch.equal(p, self.before[name])]
            depths = {HEAD if name.startswith("objective") else learner.encoder.depth_of(name) for name in changed}
            moved.append(depths)
            self.before = named

    trainer(resolve(cfg.profile), steps.total, [Watch()]).fit(learner, StepData(steps, 0, 0))
    assert moved == [{HEAD}, {0}, {1}, {2}, {HEAD, 0, 1, 2}]
