"""A fine-tuning of four rows on an encoder of two layers."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from paribus.core.build import build
from paribus.core.config import compose
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.models.encoder import Encoder
from paribus.models.heads.head import name_places
from paribus.tasks.docs.package import DocsPackage
from paribus.tasks.rows import FramedRows
from paribus.training.description import Run
from paribus.training.finetuner import finetuner
from paribus.training.profile import resolve
from paribus.training.steps import StepData, task_batch
from paribus.training.trainer import trainer

GOLDEN = Path(__file__).parents[1] / "golden" / "trained_parameters.json"


METHODS = {
    "full": ["finetune/method=full"],
    "chain_thaw": ["finetune/method=chain_thaw"],
    "frozen": ["finetune/method=frozen"],
    "top_k_layers": ["finetune/method=top_k_layers"],
    "layerwise_decay": ["finetune/method=layerwise_decay"],
    "discriminative": ["finetune/method=discriminative"],
    "gradual_unfreezing": ["finetune/method=gradual_unfreezing"],
    "adapters": ["finetune/method=adapters", "finetune.method.size=4"],
    "adapters_t5": ["finetune/method=adapters", "finetune.method.after=[ffn]", "finetune.method.activation=relu"],
    "lora": ["finetune/method=lora", "finetune.method.rank=2"],
}


TASK = DocsPackage("t", ["a", "b"])


def config(*overrides: str, norm: str = "post") -> Any:
    shape = ["model.layers=2", "model.hidden=16", "model.heads=2", "model.intermediate=32", "model.positions=32"]
    rest = [
        f"model.norm={norm}",
        "model/position=learned",
        "finetune.batch_size=3",
        "finetune.epochs=6",
        "finetune.optimizer.lr=0.01",
    ]
    return compose(["scale=test", *shape, *rest, *overrides])


def backbone(cfg: Any, seed: int = 0) -> Encoder:
    vocabulary = Vocabulary(size=60, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4))
    found: Encoder = build(cfg.model).build(vocabulary, seed)
    return found.eval()


def rows() -> FramedRows:
    length_N = np.array([9, 12, 20, 7])
    ids_T = np.random.default_rng(0).integers(5, 60, length_N.sum()).astype(np.int32)
    start_N = np.cumsum(length_N) - length_N
    return FramedRows(ids_T, np.zeros(len(ids_T), np.uint8), start_N, length_N, np.array([0, 1, 1, 0]), 0)


def tuned(cfg: Any, encoder: Encoder, fit: bool = True) -> Any:
    learner, steps = finetuner(Run.of(cfg), encoder, rows(), TASK.task_type, 7)
    if fit:
        profile = resolve(cfg.profile)
        trainer(profile, steps.total, []).fit(learner, StepData(steps, 0, 0))
    return learner.eval()


def logits(learner: Any) -> torch.Tensor:
    batch = task_batch(rows(), np.arange(4))
    with torch.inference_mode():
        head = learner.objective.heads["task"]
        found: torch.Tensor = head.logits(learner.encoder(name_places([head], batch)), batch)
    return found


def overrides_of(method: str) -> list[str]:
    if method == "lora" and importlib.util.find_spec("peft") is None:
        pytest.skip("peft is not installed")
    return METHODS[method]
