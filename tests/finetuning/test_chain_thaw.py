"""Chain-thaw: the head alone, each layer alone from the bottom, then everything for the rest."""

from __future__ import annotations

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from small_finetuning import TASK, backbone, config, rows

from paribus.core.errors import UserError
from paribus.finetuning.method import HEAD, ChainThaw
from paribus.training.description import Run
from paribus.training.finetuner import finetuner
from paribus.training.profile import resolve
from paribus.training.steps import StepData
from paribus.training.trainer import trainer


def test_stages_are_equal_pieces_from_the_head_over_the_layers_and_the_rest_is_for_all() -> None:
    method = ChainThaw(spread=0.8)
    assert [method.stage(2, done) for done in (0.0, 0.19, 0.2, 0.4, 0.6, 0.8, 0.999)] == [HEAD, HEAD, 0, 1, 2, 3, 3]
    stages, counts = np.unique([ChainThaw(0.1).stage(3, step / 500) for step in range(500)], return_counts=True)
    assert dict(zip(stages, counts, strict=True)) == {HEAD: 10, 0: 10, 1: 10, 2: 10, 3: 10, 4: 450}
    with pytest.raises(UserError, match="spread=0"):
        ChainThaw(spread=0.0)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_in_each_stage_only_its_own_weights_change(norm: str) -> None:
    method = ["finetune/method=chain_thaw", "finetune.method.spread=0.5"]
    cfg = config(*method, "finetune.batch_size=4", "finetune.epochs=8", norm=norm)
    learner, steps = finetuner(Run.of(cfg), backbone(cfg), rows(), TASK.task_type, 7)
    moved: list[set[int]] = []

    class Watch(pl.Callback):
        def __init__(self) -> None:
            self.before = {name: p.detach().cpu().clone() for name, p in learner.named_parameters()}

        def on_train_batch_end(self, *unused: object) -> None:
            named = {name: p.detach().cpu().clone() for name, p in learner.named_parameters()}
            changed = [name for name, p in named.items() if not torch.equal(p, self.before[name])]
            depths = {HEAD if name.startswith("objective") else learner.encoder.depth_of(name) for name in changed}
            moved.append(depths)
            self.before = named

    trainer(resolve(cfg.profile), steps.total, [Watch()]).fit(learner, StepData(steps, 0, 0))
    assert moved == [{HEAD}, {0}, {1}, {2}, *[{HEAD, 0, 1, 2}] * 4]
