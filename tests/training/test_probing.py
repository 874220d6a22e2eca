"""Probing in place of fine-tuning: what a run records, the file of states, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf
from stories import story
from toys_states import Mixer, Neighbors

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.models.network import Batch, Network, Outputs, find_real
from paribus.training import probing
from paribus.training.checks import check_finetuning
from paribus.training.description import Run
from paribus.training.finetuner import Base, work_of
from paribus.training.kept_states import KeptNetwork, keep_rows
from paribus.training.profile import resolve
from paribus.training.run import run
from paribus.training.steps import task_batch
from paribus.training.trainer import Setup

LINEAR = "finetune/probe=linear"
CACHED = ["finetune/probe=none", "finetune/method=frozen", "finetune.method.cached=true"]


@pytest.fixture
def given(arguments: list[str], task_folder: Path, tmp_path: Path) -> list[str]:
    """Overrides of a probed run with a task of two classes, and one of tags: whether a word is long."""
    tags = tmp_path / "tags"
    tags.mkdir()
    for split, numbers in (("train", range(48)), ("validation", range(100, 124))):
        rows = [[f"{word} {'B-long' if len(word) > 4 else 'O'}" for word in story(n, 1).split()] for n in numbers]
        (tags / f"{split}.conll").write_text("\n\n".join("\n".join(row) for row in rows) + "\n")
    own = [f"path={tags}", "columns={words: 1, tags: 2}", "classes=[O,B-long,I-long]", "metrics=[f1]"]
    settings = [f"tasks.wnut_17.{each}" for each in own]
    return [*arguments, "task=[sst2,wnut_17]", f"tasks.sst2.path={task_folder}", *settings, LINEAR]


def record(cfg: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run(cfg) / "result.json").read_text())
    return found


def test_a_run_has_a_column_for_each_layer(given: list[str]) -> None:
    cfg = compose([*given, "finetune.seeds=[0,1]"])
    found = record(cfg)
    names = {"accuracy", "control_accuracy", "selectivity"}
    wanted = {f"{name}_l{layer}" for name in names for layer in range(3)}
    first, second, *tags = (each["metrics"] for each in found["task_runs"])
    assert set(first) == set(second) == wanted
    assert [set(each) for each in tags] == [wanted | {f"f1_l{layer}" for layer in range(3)}] * 2
    assert {"sst2/accuracy_l2", "wnut_17/f1_l0", "wnut_17/selectivity_l1"} <= found["metrics"].keys()
    assert first["accuracy_l1"] == second["accuracy_l1"], "nothing is drawn"
    assert tags[0]["control_accuracy_l1"] != tags[1]["control_accuracy_l1"]
    assert tags[0]["selectivity_l1"] == tags[0]["accuracy_l1"] - tags[0]["control_accuracy_l1"]
    assert found["metrics"]["wnut_17/accuracy_l0"] > 0.85, "the length of a word is known from the word"
    assert found["baselines"]["sst2/accuracy_l1"]["majority"] == 0.5
    assert found["tuned"] == {}
    folder = Path(cfg.paths.runs)
    assert not list(folder.rglob("*.npy"))
    again = record(compose([*given, "finetune.seeds=[0,1]", f"paths.runs={folder.parent / 'again'}"]))
    assert again["task_runs"] == found["task_runs"]


def prepared(overrides: list[str], name: str) -> tuple[Base, Any, Any]:
    chosen = Run.of(compose(overrides))
    profile = resolve(chosen.profile)
    data = chosen.data()
    base = Base(chosen.tuned_for(name), chosen.model.build(data.vocabulary, 1).eval(), None)
    return base, work_of(chosen, data, name), profile


@pytest.fixture(params=["tags", "windows"])
def task(request: pytest.FixtureRequest, given: list[str]) -> tuple[list[str], str]:
    """Overrides with a task, and its name."""
    if request.param == "tags":
        return given, "wnut_17"
    windows = ["task=sst2", "finetune/head/windows=max", "finetune.length=16"]
    return [*(each for each in given if "wnut_17" not in each), *windows], "sst2"


def test_what_probes_read_is_what_a_fresh_pass_gives(task: tuple[list[str], str], tmp_path: Path) -> None:
    overrides, name = task
    base, work, profile = prepared(overrides, name)
    setup = Setup(profile, tmp_path, None)
    items = {split: work.task_type.list_probed(rows, work.examples[split]) for split, rows in work.encoded.items()}
    kept = probing.find_states(base, work, items, setup)["validation"]
    assert kept.dtype == np.float16
    at = 0
    for row in range(4):
        batch = task_batch(work.encoded["validation"], np.array([row]))
        with torch.inference_mode():
            states = base.encoder.states(batch)
        count = int(items["validation"].count_N[row])
        for layer, state_BLD in enumerate(states):
            fresh = state_BLD[:, 0].mean(0, keepdim=True)  # of all windows of the text
            if name == "wnut_17":
                fresh = state_BLD[0][batch["tag_BL"][0] >= 0]
            assert fresh.numpy() == pytest.approx(kept[layer, at : at + count], abs=2e-3)
        at += count
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "states").iterdir()}
    assert len(before) == 2
    probing.find_states(base, work, items, setup)
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_kept_rows_give_heads_the_states_of_a_fresh_pass(task: tuple[list[str], str], tmp_path: Path) -> None:
    overrides, name = task
    base, work, _ = prepared(overrides, name)
    rows = keep_rows(base.encoder, work.encoded, [0, 2], tmp_path, name, "cpu")["validation"]
    network, row_B = KeptNetwork(base.encoder, [0, 2]), np.array([5, 2, 9])
    batch = task_batch(rows, row_B)
    with torch.inference_mode():
        kept, fresh = network(batch), base.encoder.states(task_batch(rows.plain, row_B))
    real_BL = find_real(batch["length_B"], batch["ids_BL"].shape[1])
    for layer in (0, 2):
        assert torch.allclose(kept.layers[layer][real_BL], fresh[layer][real_BL], atol=2e-3)
    assert kept.layers[1].numel() == 0
    assert torch.equal(kept.hidden_BLD, kept.layers[2])


@pytest.mark.parametrize("head", [[], ["finetune/head=bilstm", "finetune/head/layers=weighted"]])
def test_a_head_learns_the_same_on_kept_states(given: list[str], head: list[str]) -> None:
    chosen = ["finetune.head.layers.read=[0,1]"] if head else []
    cached = [*given, *CACHED, *head, *chosen, "finetune.optimizer.lr=0.01"]
    fresh, kept = record(compose([*cached, "finetune.method.cached=false"])), record(compose(cached))
    assert kept["signature"] != fresh["signature"]
    assert kept["tuned"] == fresh["tuned"]
    for one, other in zip(fresh["task_runs"], kept["task_runs"], strict=True):
        assert one["metrics"] == pytest.approx(other["metrics"], abs=0.05)


def test_a_network_of_ones_own_is_probed_at_all_layers(given: list[str], trust: Callable[..., None]) -> None:
    trust("toys_states")
    cfg = compose([*given, "finetune.keep=true", "finetune.probe.control=false", "finetune.probe.layers=[0,-1]"])
    OmegaConf.set_struct(cfg, False)
    cfg.model = OmegaConf.create({"_target_": "toys_states.Neighbors", "hidden": 24, "layers": 3})
    found = record(cfg)
    assert set(found["task_runs"][0]["metrics"]) == {"accuracy_l0", "accuracy_l3"}
    assert found["metrics"]["sst2/accuracy_l0"] > 0.9, "the mean of the words tells dull from bright"
    assert len(list(Path(cfg.paths.runs).rglob("states/*.npy"))) == 4


@dataclass(frozen=True)
class Layerless(Neighbors):
    """Gives other states than those of its layers."""

    how: str = "none"

    def build(self, vocabulary: Any, seed: int) -> Network:
        return LayerlessNetwork(self, vocabulary)


class LayerlessNetwork(Mixer):
    spec: Layerless

    def forward(self, batch: Batch, state: Any = None) -> Outputs:
        outputs = super().forward(batch, state)
        assert outputs.layers is not None
        first, *rest = outputs.layers
        cases = {"none": None, "few": (first,), "short": (first[:, :-1], *rest)}
        return outputs._replace(layers=cases[self.spec.how])


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("none", r"returns none as Outputs\.layers, not 3 of shape \[1, \d+, 24\]"),
        ("few", r"returns 1 states of shape \[1, \d+, 24\] as Outputs\.layers, not 3"),
        ("short", r"returns 3 states of shape \[1, \d+, 24\] as Outputs\.layers, not 3"),
    ],
)
def test_other_states_than_those_of_the_layers_are_refused_before_training(
    how: str, said: str, given: list[str], trust: Callable[..., None]
) -> None:
    trust(__name__)
    cfg = compose(given)
    OmegaConf.set_struct(cfg, False)
    cfg.model = OmegaConf.create({"_target_": f"{__name__}.Layerless", "hidden": 24, "how": how})
    with pytest.raises(UserError, match=f"LayerlessNetwork {said}.*let LayerlessNetwork.forward return"):
        run(cfg)
    assert not list(Path(cfg.paths.runs).rglob("metrics.jsonl"))


def test_a_weighted_head_records_its_mix(given: list[str]) -> None:
    layers = ["finetune/head/layers=weighted", "finetune.head.layers.read=[0,2]", "finetune.epochs=1"]
    found = record(compose([*given, "finetune/probe=none", *layers, "finetune.head.layers.penalty=0.1"]))
    metrics = found["task_runs"][0]["metrics"]
    assert metrics["mix_l0"] + metrics["mix_l2"] == pytest.approx(1.0)
    assert metrics["centre_of_gravity"] == pytest.approx(2 * metrics["mix_l2"])


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["finetune/method=lora"], r"finetune/probe reads a frozen model.*set finetune/method=frozen"),
        (["finetune.replay=0.5"], r"finetune\.replay is set.*set finetune/probe=none"),
        (["finetune/joint=multi_task", "task=[sst2,rte]"], r"finetune\.joint is set"),
        (["finetune.ensemble=2"], r"finetune\.ensemble is set"),
        (["finetune/head=linear"], r"finetune/probe replaces the head"),
        (["finetune/head/layers=concat"], r"finetune/probe replaces the head"),
        (["task=squad_v1"], r"tasks\.squad_v1 cannot be probed"),
        (
            [*CACHED, "members=2"],
            r"but members=2",
        ),
        (
            [*CACHED, "finetune.replay=1"],
            r"cached=true does not work with finetune\.replay",
        ),
        (["members=2"], r"members=2, but finetune/probe reads a single model"),
        (["family=t5"], r"tasks\.sst2 cannot be probed"),
    ],
)
def test_what_a_probe_would_not_use_is_refused(overrides: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_finetuning(Run.of(compose(["scale=test", "task=sst2", LINEAR, *overrides])))


def test_an_id_without_a_probe_is_what_it_was(given: list[str]) -> None:
    plain = Run.of(compose([*given, "finetune/probe=none"]))
    older = {**plain.config, "finetune": {k: v for k, v in plain.config["finetune"].items() if k != "probe"}}
    assert Run.of(older).identity.signature == plain.identity.signature
    assert Run.of(compose(given)).identity.signature != plain.identity.signature
    assert Run.of(compose(given)).identity.pretrain == plain.identity.pretrain
