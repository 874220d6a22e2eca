"""Methods of fine-tuning: what moves, at which rate, and what an adapter is once it is saved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from small_finetuning import GOLDEN, METHODS, TASK, backbone, config, logits, overrides_of, rows, tuned
from toy_training import batch_of, fit, network_of
from toys import Topic
from toys_outside import Normed
from toys_states import Neighbors

from paribus.core.build import build
from paribus.core.errors import UserError
from paribus.finetuning import saved
from paribus.finetuning.method import HEAD, ChainThaw, Frozen, GradualUnfreezing, LayerwiseDecay
from paribus.objectives.objective import Objective
from paribus.optim.adamw import AdamW
from paribus.optim.lr_schedule import Schedule
from paribus.runs.identity import meaning
from paribus.training.checks import check_finetuning, check_tasks
from paribus.training.description import Run
from paribus.training.finetune import trained_share
from paribus.training.finetuner import Base, finetuner
from paribus.training.learner import Finetuning
from paribus.training.profile import resolve
from paribus.training.steps import StepData, task_batch
from paribus.training.trainer import trainer


def layers(read: object) -> list[str]:
    return ["finetune/head/layers=concat", f"finetune.head.layers.read=[{read}]"]


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("method", METHODS)
def test_what_each_method_trains_is_exactly_what_is_written_down(method: str, norm: str) -> None:
    cfg = config(*overrides_of(method), norm=norm)
    learner = tuned(cfg, backbone(cfg), fit=False)
    names = sorted(name for name, parameter in learner.named_parameters() if parameter.requires_grad)
    assert names == json.loads(GOLDEN.read_text())[f"{method}/{norm}"]
    in_groups = {id(p) for group in learner.configure_optimizers().param_groups for p in group["params"]}
    assert in_groups == {id(p) for p in learner.parameters() if p.requires_grad}


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("method", METHODS)
def test_only_what_a_method_trains_changes(method: str, norm: str) -> None:
    cfg = config(*overrides_of(method), norm=norm)
    encoder = backbone(cfg)
    before = {name: parameter.clone() for name, parameter in encoder.named_parameters()}
    learner = tuned(cfg, encoder)
    moved = {f"encoder.{name}" for name in saved.trained(learner.encoder, encoder)}
    written = {name for name in json.loads(GOLDEN.read_text())[f"{method}/{norm}"] if name.startswith("encoder.")}
    unused = {"encoder.backbone.embeddings.token_type_embeddings.weight"}
    assert moved <= written
    assert all("norm" in name.lower() or "bias" in name or name in unused for name in written - moved)
    assert all(torch.equal(before[name], parameter) for name, parameter in encoder.named_parameters())


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("method", ["adapters", "adapters_t5", "lora"])
def test_new_modules_leave_logits_as_they_were(method: str, norm: str) -> None:
    cfg = config(*overrides_of(method), norm=norm)
    encoder = backbone(cfg)
    plain = logits(tuned(config(norm=norm), encoder, fit=False))
    shaped = logits(tuned(cfg, encoder, fit=False))
    assert torch.allclose(plain, shaped, atol=1e-3)
    assert method == "lora" or not torch.equal(plain, shaped)


@pytest.mark.parametrize(("depth", "kept"), [("[0,0.5]", {0}), ("[0.5,1]", {1}), ("[0,1]", {0, 1})])
def test_adapters_of_a_part_of_the_layers(depth: str, kept: set[int]) -> None:
    cfg = config("finetune/method=adapters", f"finetune.method.depth={depth}")
    learner = tuned(cfg, backbone(cfg), fit=False)
    names = [name for name, _ in learner.encoder.named_parameters() if ".down." in name]
    assert {learner.encoder.depth_of(name) - 1 for name in names} == kept
    assert len(names) == 2 * 2 * len(kept), "after attention and feed-forward network, each with a bias"


@pytest.mark.parametrize("gap", [0, 1, 2])
def test_layerwise_rates_are_the_published_formula(gap: int) -> None:
    cfg = config(
        "finetune/method=layerwise_decay", "finetune.method.decay=0.7", f"finetune.method.top_gap={gap}", norm="pre"
    )
    learner = tuned(cfg, backbone(cfg), fit=False)
    names = {id(parameter): name for name, parameter in learner.named_parameters()}
    rates = {names[id(p)]: g["rate"] for g in learner.configure_optimizers().param_groups for p in g["params"]}
    layers = 2
    for name, rate in rates.items():
        if name.startswith("objective."):
            assert rate == 1.0
        elif "embeddings" in name:
            assert rate == pytest.approx(0.7 ** (layers + gap))
        elif ".layer." in name:
            depth = int(name.split(".layer.")[1].split(".")[0]) + 1
            assert rate == pytest.approx(0.7 ** (layers + gap - depth))
        else:  # the final LayerNorm of a pre-LN encoder goes with the top layer
            assert rate == pytest.approx(0.7**gap)


def shares(cfg: Any) -> dict[str, float]:
    """{parameter: its rate as a share of the optimizer's}."""
    learner = tuned(cfg, backbone(cfg), fit=False)
    names = {id(parameter): name for name, parameter in learner.named_parameters()}
    return {names[id(p)]: g["rate"] for g in learner.configure_optimizers().param_groups for p in g["params"]}


def test_embeddings_keep_the_full_rate_if_asked() -> None:
    asked = ["finetune/method=layerwise_decay", "finetune.method.decay=0.85", "finetune.method.top_gap=0"]
    decayed, full = shares(config(*asked)), shares(config(*asked, "finetune.method.embeddings=full"))
    for name, rate in full.items():  # Sun et al.: lr * 0.85 ** (1 - i) in layer i of two, everything else at lr
        expected = 0.85 ** (1 - int(name.split(".layer.")[1][0])) if ".layer." in name else 1.0
        assert rate == pytest.approx(expected), name
    assert all(rate == pytest.approx(0.85**2) for name, rate in decayed.items() if "embeddings" in name)
    assert all(decayed[name] == rate for name, rate in full.items() if "embeddings" not in name)


def test_discriminative_rates_are_the_same_with_and_without_unfreezing() -> None:
    unfreezing = ["finetune/method=gradual_unfreezing", "finetune.method.schedule=released"]
    rule = ["finetune.method.decay=0.3846", "finetune.method.top_gap=1"]
    both = [shares(config(*method, *rule)) for method in (["finetune/method=discriminative"], unfreezing)]
    assert both[0] == both[1]
    assert min(both[0].values()) == pytest.approx(0.3846**3)


def test_older_runs_keep_their_names_and_new_settings_count() -> None:
    def names(*overrides: str) -> Any:
        return meaning(config(*overrides).finetune.method)

    plain = names("finetune/method=layerwise_decay")
    assert plain == {"component": "LayerwiseDecay", "semantics": 1, "decay": 0.8, "top_gap": 2}
    assert names("finetune/method=layerwise_decay", "finetune.method.embeddings=full") != plain
    plain = names("finetune/method=gradual_unfreezing")
    assert plain == {"component": "GradualUnfreezing", "semantics": 1, "decay": 1.0, "spread": 1.0}


def test_the_head_has_a_rate_of_its_own_and_vectors_do_not_decay() -> None:
    cfg = config("finetune.head_lr=0.05", "finetune/method=frozen")
    learner = tuned(cfg, backbone(cfg), fit=False)
    groups = learner.configure_optimizers().param_groups
    assert {group["rate"] for group in groups} == {5.0}
    assert {(group["weight_decay"] > 0, p.ndim > 1) for group in groups for p in group["params"]} == {
        (True, True),
        (False, False),
    }
    trainer(resolve(cfg.profile), 1, []).fit(
        learner, StepData(finetuner(Run.of(cfg), learner.encoder, rows(), TASK.task_type, 7)[1], 0, 0)
    )
    schedule = build(cfg.finetune.lr_schedule).factor(0.5 / learner.total_steps)
    assert learner.optimizers().param_groups[0]["lr"] == pytest.approx(0.05 * schedule)


def test_layers_open_from_the_top_and_embeddings_last() -> None:
    method = GradualUnfreezing()
    assert [method.lowest(3, done) for done in (0.0, 0.24, 0.25, 0.5, 0.75, 0.99)] == [3, 3, 2, 1, 0, 0]
    assert [GradualUnfreezing(0.5).lowest(3, done) for done in (0.0, 0.13, 0.38, 0.9)] == [3, 2, 0, 0]
    encoder = backbone(config())
    method.set_trainable(encoder, 0.0)
    moving = {encoder.depth_of(name) for name, p in encoder.named_parameters() if p.requires_grad}
    assert moving == {2}


def test_the_released_schedule_opens_the_head_then_the_top_layer_then_all() -> None:
    method = GradualUnfreezing(spread=0.5, schedule="released")
    opened = {}
    for done in (0.0, 0.24, 0.25, 0.49, 0.5, 0.99):
        encoder = backbone(config("model.layers=3"))
        method.set_trainable(encoder, done)
        opened[done] = {encoder.depth_of(name) for name, p in encoder.named_parameters() if p.requires_grad}
    everything = {0, 1, 2, 3}
    assert opened == {0.0: set(), 0.24: set(), 0.25: {3}, 0.49: {3}, 0.5: everything, 0.99: everything}


@pytest.mark.parametrize("wrong", [{"schedule": "epochs"}, {"decay": 0.0}, {"top_gap": 3}, {"spread": 1.5}])
def test_unfreezing_refuses_what_it_does_not_know(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=next(iter(wrong))):
        GradualUnfreezing(**wrong)
    with pytest.raises(UserError, match="embeddings=half"):
        LayerwiseDecay(0.9, embeddings="half")


def test_the_share_that_is_trained_is_counted_with_the_head() -> None:
    tasks = ["task=[docs_package,stsb]", "tasks.docs_package.packages=[rich,networkx,hydra]"]
    cfg = config("finetune/method=adapters", "finetune.method.size=4", *tasks)
    encoder = backbone(cfg)
    found = trained_share([Base(Run.of(cfg), encoder, None)])
    adapters, norms = 2 * 2 * (2 * 16 * 4 + 4 + 16), (1 + 2 * 2) * 2 * 16
    head = (16 * 16 + 16) + (3 * 17 + 1 * 17) // 2  # pooler, and classifiers of three classes and of one value
    assert found["head_parameters"] == head
    assert found["trained_parameters"] == adapters + norms + head
    assert found["trained_share"] == pytest.approx((adapters + norms + head) / (encoder.parameter_count() + head))
    frozen = trained_share([Base(Run.of(config("finetune/method=frozen", *tasks)), encoder, None)])
    assert frozen["trained_parameters"] == head
    assert trained_share([Base(Run.of(config(*tasks)), encoder, None)])["trained_share"] == 1


@pytest.mark.parametrize("method", ["full", "adapters", "frozen", "gradual_unfreezing", "lora"])
def test_a_saved_fine_tuning_predicts_the_same_on_the_shared_backbone(method: str, tmp_path: Path) -> None:
    cfg = config(*overrides_of(method), *layers("-1,-2"), "finetune/head/pooling=mean", norm="pre")
    encoder = backbone(cfg)
    learner = tuned(cfg, encoder)
    head = learner.objective.heads["task"]
    saved.save(
        tmp_path / "one.safetensors", learner.encoder, head, encoder, Run.of(cfg).config["finetune"], TASK.task_type
    )
    found = saved.load(tmp_path / "one.safetensors", encoder)
    assert torch.equal(found.logits(task_batch(rows(), np.arange(4))), logits(learner))
    assert found.task_type == TASK.task_type


def test_several_adapters_are_switched_on_one_backbone(tmp_path: Path) -> None:
    encoder = backbone(config())
    expected, files = [], []
    for number, size in enumerate((2, 8)):
        cfg = config("finetune/method=adapters", f"finetune.method.size={size}", f"finetune.epochs={number + 2}")
        learner = tuned(cfg, encoder)
        files.append(tmp_path / f"{size}.safetensors")
        saved.save(
            files[-1],
            learner.encoder,
            learner.objective.heads["task"],
            encoder,
            Run.of(cfg).config["finetune"],
            TASK.task_type,
        )
        expected.append(logits(learner))
    batch, before = task_batch(rows(), np.arange(4)), saved.fingerprint(encoder)
    loaded = [saved.load(file, encoder) for file in files]
    for number in (0, 1, 0):
        assert torch.equal(loaded[number].logits(batch), expected[number])
    assert saved.fingerprint(encoder) == before
    assert all(parameter.requires_grad for parameter in encoder.parameters())
    tables = {model.encoder.table_VD.data_ptr() for model in loaded}
    assert tables == {encoder.table_VD.data_ptr()}
    with pytest.raises(UserError, match="another backbone"):
        saved.load(files[0], backbone(config(), seed=1))
    with pytest.raises(UserError, match="no fine-tuning at"):
        saved.load(tmp_path / "absent.safetensors", encoder)


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        (
            ["finetune/method=top_k_layers", "finetune.method.k=9"],
            r"finetune\.method\.k=9 exceeds the model's 2 layers",
        ),
        (["finetune/method=top_k_layers", "finetune.method.k=0"], r"finetune\.method\.k=0"),
        (["finetune/method=adapters", "finetune.method.size=0"], r"finetune\.method\.size=0"),
        (["finetune/method=adapters", "finetune.method.after=[head]"], r"finetune\.method\.after"),
        (["finetune/method=adapters", "finetune.method.depth=[1,0]"], r"finetune\.method\.depth=\[1, 0\]"),
        (["finetune/method=adapters", "finetune.method.depth=[0.4,0.6]"], r"none of the model's 2 layers"),
        (["finetune/method=layerwise_decay", "finetune.method.top_gap=3"], r"finetune\.method\.top_gap=3"),
        (["finetune/method=layerwise_decay", "finetune.method.decay=1.5"], r"finetune\.method\.decay=1.5"),
        (["finetune/method=gradual_unfreezing", "finetune.method.spread=0"], r"finetune\.method\.spread=0"),
        (layers(3), r"finetune\.head\.layers\.read=\[3\] does not fit a model of 2 layers"),
        (layers(""), r"finetune\.head\.layers\.read"),
        (layers("2,-1"), r"finetune\.head\.layers\.read=\[2, -1\] names layer 2 of 2 twice"),
        (["finetune/head/layers=weighted", "finetune.head.layers.read=1"], r"learns the weight of one layer.*read=all"),
        ([*layers(1), "finetune.head.layers.combine=sum"], r"finetune\.head\.layers\.combine=sum"),
        (["finetune/head/pooling=mean", "finetune.head.pooling.kind=last"], r"finetune\.head\.pooling\.kind=last"),
        (["finetune/head/pooling=mean", "finetune.head.pooler=pretrained"], r"finetune\.head\.pooler=pretrained"),
        (["finetune.label_smoothing=1"], r"finetune\.label_smoothing=1"),
        (["finetune.focal=2", "finetune.label_smoothing=0.1"], "both set"),
        (["finetune.head_lr=0"], r"finetune\.head_lr=0"),
        (["finetune.truncation=middle"], r"finetune\.truncation=middle"),
    ],
)
def test_bad_settings_are_one_line_before_compute(overrides: list[str], named: str) -> None:
    def check() -> None:
        run = Run.of(config(*overrides))
        check_finetuning(run)
        check_tasks(run, 2, False, None)

    with pytest.raises(UserError, match=named):
        check()


@pytest.mark.parametrize("method", sorted(METHODS.keys() - {"full", "frozen"}))
def test_a_method_that_a_network_gives_nothing_to_do_is_refused(method: str) -> None:
    asked = {"lora": "matrices", "adapters": "sublayers", "adapters_t5": "sublayers"}.get(method, "depth_of")
    run = Run.of(config(*overrides_of(method)))
    with pytest.raises(UserError, match=rf"write Mixer\.{asked}, or set finetune/method=full"):
        run.finetune.method.check_network(network_of(Neighbors(16)))
    run.finetune.method.check_network(network_of())


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


def test_frozen_keeps_running_statistics_and_silences_recurrent_layers() -> None:
    network = network_of(Normed(16))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    method = Frozen()
    method.shape(network, 0)
    silent: Any = network
    assert (silent.lstm.dropout, silent.drop.p) == (0.0, 0.0)
    settings: dict[str, Any] = {"total_steps": 2, "total_tokens": 0, "clip": 1.0, "seed": 1, "method": method}
    head = Objective({"task": Topic(16, 2)})
    learner: Any = Finetuning(network, head, AdamW(lr=0.01), Schedule("constant"), **settings)
    fit(learner, [[batch_of(0)], [batch_of(1)]], 2)
    assert all(torch.equal(value, before[name]) for name, value in learner.encoder.state_dict().items())
    assert learner.objective.training
