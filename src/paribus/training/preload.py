"""Imports all that a run imports, for a process that forks runs. That starts no thread and leaves CUDA alone."""

from __future__ import annotations

import importlib

MODULES = (
    "hydra.utils",
    "optuna",
    "paribus.models.text_to_text",
    "paribus.models.encoder",
    "paribus.optim.adamw",
    "paribus.runs.provenance",
    "paribus.tasks.docs.package",
    "paribus.training.finetune",
    "paribus.training.logger",
    "paribus.training.pretrain",
    "paribus.training.run",
    "requests",
    "torch._dynamo",  # by the first optimizer
    "torch.utils.serialization.config",  # by the first checkpoint
    "torchmetrics.functional",
    "wandb",
)

for name in MODULES:
    importlib.import_module(name)
