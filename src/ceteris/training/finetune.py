"""The fine-tuning stage: every task, every fine-tuning seed, from one checkpoint."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import torch

from ceteris.components import build
from ceteris.errors import UserError
from ceteris.files import write_text
from ceteris.hashing import digest
from ceteris.heads.bilstm import OnBiLSTM
from ceteris.heads.classification import ClassificationHead
from ceteris.models import checkpoint
from ceteris.models.encoder import Encoder
from ceteris.models.weights import initialise
from ceteris.objectives.objective import Objective
from ceteris.tasks.baselines import baselines
from ceteris.tasks.encode import Encoded, encode, order
from ceteris.tasks.metrics import score
from ceteris.tokens.prepare import Data
from ceteris.training.callbacks import Bar
from ceteris.training.execution import Profile
from ceteris.training.fit import trainer
from ceteris.training.learner import Finetuning
from ceteris.training.steps import TaskSteps, loader, task_batch

Pooler = dict[str, torch.Tensor]

DONE = "task_runs.jsonl"
POOLERS = ("fresh", "pretrained")
ROWS = 128  # a forward pass of the evaluation


def finetune(cfg: Any, data: Data, encoder: Encoder, profile: Profile, folder: Path) -> dict[str, Any]:
    """{"task_runs": [{task, seed, metrics}], "baselines": {column: {name: value}}}; finished ones are not repeated."""
    done = _finished(folder / DONE)
    pooler = checkpoint.load_pooler(encoder, folder / "model") if cfg.finetune.pooler == "pretrained" else None
    baseline: dict[str, dict[str, float]] = {}
    for name, node in cfg.tasks.items():
        task = build(node)
        cache = Path(cfg.paths.cache).expanduser()
        for metric, values in baselines(task, cache).items():
            baseline[f"{name}/{metric}"] = values
        missing = [seed for seed in cfg.finetune.seeds if (name, seed) not in done]
        encoded = _encoded(cfg, data, task, cache) if missing else {}
        for seed in missing:
            done[name, seed] = _run(cfg, encoder, encoded, task, seed, profile, pooler)
            lines = [json.dumps({"task": t, "seed": s, "metrics": m}) for (t, s), m in done.items()]
            write_text(folder / DONE, "\n".join(lines) + "\n")
    runs = [{"task": task, "seed": seed, "metrics": metrics} for (task, seed), metrics in done.items()]
    return {"task_runs": runs, "baselines": baseline}


def _finished(path: Path) -> dict[tuple[str, int], dict[str, float]]:
    if not path.is_file():
        return {}
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {(line["task"], line["seed"]): line["metrics"] for line in lines}


def _encoded(cfg: Any, data: Data, task: Any, cache: Path) -> dict[str, Encoded]:
    examples = task.examples(cache)
    return {
        split: encode(rows, data.tokenizer, data.vocabulary, cfg.finetune.length) for split, rows in examples.items()
    }


def check_pooler(cfg: Any, pair_head: Any) -> None:
    """Raise UserError for an unknown `finetune.pooler`, or one that this pre-training does not give."""
    chosen = cfg.finetune.pooler
    if chosen not in POOLERS:
        raise UserError(f"finetune.pooler={chosen}", f"choose {' or '.join(POOLERS)}")
    if chosen == "pretrained" and pair_head is None and cfg.tasks:
        raise UserError(
            "finetune.pooler=pretrained, but the objective has no head on pairs",
            "set finetune.pooler=fresh, or take objective=mlm_nsp",
        )


def _run(
    cfg: Any,
    encoder: Encoder,
    encoded: dict[str, Encoded],
    task: Any,
    seed: int,
    profile: Profile,
    pooler: Pooler | None,
) -> dict[str, float]:
    own = int(digest([cfg.seed, task.name, seed], 15), 16)  # of the head, the order and dropout
    learner, steps = finetuner(cfg, encoder, encoded["train"], task, own, pooler)
    trainer(profile, steps.total, [Bar(f"{task.name} seed {seed}", steps.total)]).fit(
        learner, loader(steps, 0, profile.workers)
    )
    metrics: dict[str, float] = {}
    for split, rows in encoded.items():
        if split != "train":
            suffix = "" if split == "validation" else f"_{split}"
            values = _score(learner, rows, task)
            metrics |= {f"{name}{suffix}": value for name, value in values.items()}
    return metrics


def finetuner(
    cfg: Any, encoder: Encoder, encoded: Encoded, task: Any, seed: int, pooler: Pooler | None = None
) -> tuple[Finetuning, TaskSteps]:
    """A learner on a copy of the encoder with a new head, whose pooler may be given, and its steps."""
    settings = cfg.finetune
    own = copy.deepcopy(encoder)
    build(cfg.finetuning).shape(own)
    head = ClassificationHead(own, len(task.classes), settings.dropout)
    initialise(head, seed, 0.02)
    if pooler is not None:
        head.pooler.load_state_dict(pooler)
    steps = TaskSteps(encoded, settings.batch_size, settings.epochs, seed)
    learner = Finetuning(
        own,
        Objective({"task": _on_bilstm(own, head, seed) if settings.bilstm else head}),
        build(settings.optimizer),
        build(settings.lr_schedule),
        total_steps=steps.total,
        total_tokens=0,
        clip=settings.clip,
        seed=seed,
    )
    return learner, steps


def _on_bilstm(encoder: Encoder, head: ClassificationHead, seed: int) -> OnBiLSTM:
    """The head, with the initial weights that it has, on a new BiLSTM."""
    wrapped = OnBiLSTM(encoder, head)
    initialise(wrapped.lstm, seed, wrapped.std)
    return wrapped


def _score(learner: Finetuning, encoded: Encoded, task: Any) -> dict[str, float]:
    """Metrics over all examples, in full precision."""
    learner.eval()
    head: Any = learner.objective.heads["task"]
    guesses, targets = [], []
    with torch.inference_mode():
        for rows in order(encoded.length_N, ROWS, 0, 0, shuffle=False):
            batch = learner.transfer_batch_to_device(task_batch(encoded, rows), learner.device, 0)
            guesses.append(head.logits(learner.encoder(batch), batch).float().cpu())
            targets.append(batch["label_B"].cpu())
    values: dict[str, float] = score(task.metrics, torch.cat(guesses), torch.cat(targets), len(task.classes))
    return values
