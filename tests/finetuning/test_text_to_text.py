"""Methods of fine-tuning on models that write, and on encoders that see the left alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_finetuning import GOLDEN, METHODS, TASK, overrides_of
from small_finetuning import backbone as bert_backbone
from small_finetuning import config as bert
from small_finetuning import tuned as bert_tuned

from paribus.core.build import build
from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.finetuning import saved
from paribus.finetuning.bottleneck import Adapted
from paribus.finetuning.method import GradualUnfreezing
from paribus.models.generation import greedy
from paribus.models.t5 import ARCHITECTURES
from paribus.models.text_to_text import TextToText
from paribus.tasks.prompts import Fields, Ragged, TextRows
from paribus.tasks.types.classification import ClassNames
from paribus.training.checks import check_finetuning
from paribus.training.description import Run
from paribus.training.finetune import trained_share
from paribus.training.finetuner import Base, finetuner
from paribus.training.profile import resolve
from paribus.training.steps import StepData, task_batch
from paribus.training.trainer import trainer

VOCABULARY = Vocabulary(60, 0, 1, 2, 3, 4, (0, 1, 2, 3, 4, *range(50, 60)), 10, 59)
LISTED = ("encoder_decoder", "encoder_decoder_shared", "prefix_lm")  # in the golden file
TUNING = [method for method in METHODS if method != "frozen"]  # the head is tied
PUT_IN = ["adapters", "adapters_t5", "lora"]
FITTED = [(method, "encoder_decoder") for method in TUNING] + [("adapters_t5", name) for name in ARCHITECTURES[1:]]


def config(*overrides: str, architecture: str = "encoder_decoder") -> Any:
    shape = ["model.layers=2", "model.hidden=16", "model.heads=2", "model.key_width=8", "model.intermediate=32"]
    rest = [f"model.architecture={architecture}", "finetune.batch_size=3", "finetune.epochs=3", "finetune.clip=null"]
    return compose(["scale=test", "family=t5", *shape, *rest, "finetune.optimizer.lr=0.01", *overrides])


def model_of(cfg: Any, seed: int = 0) -> TextToText:
    found: TextToText = build(cfg.model).build(VOCABULARY, seed)
    return found.eval()


def task_type(cfg: Any) -> ClassNames:
    return ClassNames(Fields("t", "text"), build(cfg.model).single, ("a", "b"), ("accuracy",))


def rows(cfg: Any) -> TextRows:
    random = np.random.default_rng(0)
    read, write = ([np.append(random.integers(5, 50, n), 3) for n in sizes] for sizes in ([9, 12, 20, 7], [1, 2, 2, 3]))
    return TextRows(Ragged.of(read), Ragged.of(write), build(cfg.model).collator, 0, 6, None)  # type: ignore[arg-type]


def tuned(cfg: Any, model: TextToText, fit: bool = True) -> Any:
    learner, steps = finetuner(Run.of(cfg), model, rows(cfg), task_type(cfg), 7)
    if fit:
        trainer(resolve(cfg.profile), steps.total, []).fit(learner, StepData(steps, 0, 0))
    return learner.eval()


def logits(cfg: Any, model: Any, head: Any) -> torch.Tensor:
    batch = task_batch(rows(cfg), np.arange(4))
    with torch.inference_mode():
        found: torch.Tensor = head.logits(model(batch), batch)
    return found


def logits_of(cfg: Any, learner: Any) -> torch.Tensor:
    return logits(cfg, learner.encoder, learner.objective.heads["task"])


@pytest.mark.parametrize("architecture", LISTED)
@pytest.mark.parametrize("method", TUNING)
def test_what_each_method_trains_is_exactly_what_is_written_down(method: str, architecture: str) -> None:
    cfg = config(*overrides_of(method), architecture=architecture)
    learner = tuned(cfg, model_of(cfg), fit=False)
    names = sorted(name for name, parameter in learner.named_parameters() if parameter.requires_grad)
    assert names == json.loads(GOLDEN.read_text())[f"{method}/{architecture}"]


@pytest.mark.parametrize(("method", "architecture"), FITTED)
def test_only_what_a_method_trains_changes(method: str, architecture: str) -> None:
    cfg = config(*overrides_of(method), architecture=architecture)
    model = model_of(cfg)
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    learner = tuned(cfg, model)
    moved = set(saved.trained(learner.encoder, model))
    trained = {name for name, parameter in learner.encoder.named_parameters() if parameter.requires_grad}
    assert moved == trained
    assert all(torch.equal(before[name], parameter) for name, parameter in model.named_parameters())


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("method", PUT_IN)
def test_new_modules_leave_logits_as_they_were(method: str, architecture: str) -> None:
    plain, cfg = config(architecture=architecture), config(*overrides_of(method), architecture=architecture)
    model = model_of(cfg)
    before = logits_of(plain, tuned(plain, model, fit=False))
    after = logits_of(cfg, tuned(cfg, model, fit=False))
    assert torch.allclose(before, after, atol=1e-3)
    assert method == "lora" or not torch.equal(before, after)


def test_adapters_of_t5_follow_each_feed_forward_network_of_both_stacks() -> None:
    cfg = config("finetune/method=adapters_t5", "finetune.method.size=4", "task=docs_package")
    learner = tuned(cfg, model_of(cfg), fit=False)
    stacks = learner.encoder.backbone.encoder.block, learner.encoder.backbone.decoder.block
    for sublayers in (block.layer for blocks in stacks for block in blocks):
        assert [isinstance(each.dropout, Adapted) for each in sublayers] == [False] * (len(sublayers) - 1) + [True]
    weights, norms = 4 * (2 * 16 * 4 + 4 + 16), (2 * 2 + 1 + 2 * 3 + 1) * 16
    counts = trained_share([Base(Run.of(cfg), model_of(cfg), None)])
    assert counts["trained_parameters"] == weights + norms
    assert counts["head_parameters"] == 0  # it is the word embeddings


@pytest.mark.parametrize("method", PUT_IN)
def test_stacks_that_share_weights_share_what_is_put_in(method: str) -> None:
    cfg = config(*overrides_of(method), architecture="encoder_decoder_shared")
    backbone = tuned(cfg, model_of(cfg), fit=False).encoder.backbone
    reads, writes = backbone.encoder.block[1], backbone.decoder.block[1]
    assert reads.layer[-1] is writes.layer[-1]
    assert reads.layer[0].dropout is writes.layer[0].dropout
    assert reads.layer[0].SelfAttention.q is writes.layer[0].SelfAttention.q


@pytest.mark.parametrize(("method", "gap"), [("layerwise_decay", 2), ("discriminative", 1)])
def test_layers_of_both_stacks_have_the_rates_of_the_formula(method: str, gap: int) -> None:
    cfg = config(f"finetune/method={method}", "finetune.method.decay=0.7")
    learner = tuned(cfg, model_of(cfg), fit=False)
    names = {id(parameter): name for name, parameter in learner.named_parameters()}
    rates = {names[id(p)]: g["rate"] for g in learner.configure_optimizers().param_groups for p in g["params"]}
    assert rates.keys() == dict(learner.named_parameters()).keys()
    for name, rate in rates.items():
        depth = 0 if "shared" in name else 2 if "final" in name else int(name.split(".block.")[1][0]) + 1
        assert rate == pytest.approx(0.7 ** (2 + gap - depth)), name


def opened(model: TextToText, done: float) -> set[int]:
    GradualUnfreezing().set_trainable(model, done)
    return {model.depth_of(name) for name, parameter in model.named_parameters() if parameter.requires_grad}


def test_both_stacks_open_from_the_top_in_as_many_pieces_as_layers() -> None:
    model = model_of(config("model.layers=4"))
    assert [opened(model, done) for done in (0.0, 0.26, 0.51, 0.76)] == [
        {0, 4},
        {0, 3, 4},
        {0, 2, 3, 4},
        {0, 1, 2, 3, 4},
    ]
    GradualUnfreezing().set_trainable(model, 0.3)
    moving = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert {name.split(".")[1] for name in moving} == {"shared", "encoder", "decoder"}
    apart = model_of(config("model.layers=4", "model.head=separate"))  # its embeddings come last, as ULMFiT's
    assert [opened(apart, done) for done in (0.0, 0.21, 0.81)] == [{4}, {3, 4}, {0, 1, 2, 3, 4}]


def test_closed_layers_keep_their_bits_until_they_open() -> None:
    cfg = config("finetune/method=gradual_unfreezing", "finetune.method.spread=1.0")
    model = model_of(cfg)
    learner, steps = finetuner(Run.of(cfg), model, rows(cfg), task_type(cfg), 7)
    trainer(resolve(cfg.profile), steps.total // 2, []).fit(learner, StepData(steps, 0, 0))
    moved = set(saved.trained(learner.encoder, model))
    assert {model.depth_of(name) for name in moved} == {0, 2}
    assert "backbone.shared.weight" in moved


@pytest.mark.parametrize(
    ("method", "architecture"),
    [
        ("full", "encoder_decoder"),
        ("gradual_unfreezing", "encoder_decoder"),
        *((method, architecture) for method in ("adapters_t5", "lora") for architecture in LISTED),
    ],
)
def test_a_saved_fine_tuning_writes_the_same_on_the_shared_model(
    method: str, architecture: str, tmp_path: Path
) -> None:
    cfg = config(*overrides_of(method), architecture=architecture)
    model = model_of(cfg)
    learner = tuned(cfg, model)
    head = learner.objective.heads["task"]
    saved.save(
        tmp_path / "one.safetensors", learner.encoder, head, model, Run.of(cfg).config["finetune"], task_type(cfg)
    )
    found = saved.load(tmp_path / "one.safetensors", model)
    assert torch.equal(logits(cfg, found.encoder, found.head), logits_of(cfg, learner))
    batch = task_batch(rows(cfg), np.arange(4))
    with torch.inference_mode():
        written = greedy(found.encoder, found.head, batch, 6)  # type: ignore[arg-type]
        assert written == greedy(learner.encoder, head, batch, 6)
    other = model_of(cfg, seed=1)
    with pytest.raises(UserError, match="another backbone"):
        saved.load(tmp_path / "one.safetensors", other)


def test_a_frozen_model_trains_a_head_of_its_own_alone_and_without_dropout() -> None:
    cfg = config("finetune/method=frozen", "model.head=separate", "model.dropout=0.5")
    model = model_of(cfg)
    learner = tuned(cfg, model)
    assert not saved.trained(learner.encoder, model)
    silent = logits_of(cfg, learner)
    learner.train()
    assert torch.equal(logits_of(cfg, learner), silent)
    tied = config("finetune/method=frozen", "task=sst2")
    with pytest.raises(UserError, match="finetune/method=frozen leaves nothing to train"):
        check_finetuning(Run.of(tied))


@pytest.mark.parametrize("method", ["frozen", "adapters", "lora", "gradual_unfreezing"])
def test_an_encoder_that_sees_the_left_trains_the_same(method: str) -> None:
    cfg = bert(*overrides_of(method), "model.attention=left")
    encoder = bert_backbone(cfg)
    learner = bert_tuned(cfg, encoder)
    names = sorted(name for name, parameter in learner.named_parameters() if parameter.requires_grad)
    assert names == json.loads(GOLDEN.read_text())[f"{method}/post"]
    moved = {f"encoder.{name}" for name in saved.trained(learner.encoder, encoder)}
    assert moved <= set(names)
    assert bool(moved) == (method != "frozen")
    assert TASK.task_type.classes == ("a", "b")
