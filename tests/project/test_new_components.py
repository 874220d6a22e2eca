"""New concepts plug in without an edit of the core: word vectors, a second network, a memory, a head for each task."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf
from pytorch_lightning import Callback
from safetensors.torch import load_file
from toy_training import VOCABULARY, assert_resumes, batch_of, fit, learner_of, network_of
from toys import Remembering, ReplacedTokens, Topic, WordVectors
from toys_changes import Relative

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.corruption.views.replace import Replace
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.models import checkpoint
from paribus.models.pretrained import Pretrained
from paribus.objectives.mlm import MaskedLM
from paribus.objectives.objective import Objective
from paribus.training.profile import ResolvedProfile
from paribus.training.run import run
from paribus.training.trainer import trainer


def test_callbacks_of_other_packages_stay_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (about := tmp_path / "other-1.0.dist-info").mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[pytorch_lightning.callbacks_factory]\nother = other:callbacks\n")
    (tmp_path / "other.py").write_text(
        "import pytorch_lightning as pl\nclass Other(pl.Callback):\n"
        "    def on_fit_start(self, *_):\n        raise RuntimeError('a callback from outside')\n"
        "def callbacks():\n    return [Other()]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert [point.name for point in entry_points(group="pytorch_lightning.callbacks_factory")] == ["other"]
    ours = Callback()
    found = vars(trainer(ResolvedProfile("cpu", "32-true", 1, 0, None, False), 1, [ours]))["callbacks"]
    assert ours in found
    assert not [one for one in found if type(one).__name__ == "Other"]


def test_word_vectors_are_a_model(arguments: list[str], task_folder: Path, trust: Callable[..., None]) -> None:
    trust("toys")
    cfg = compose([*arguments, "task=sst2", f"tasks.sst2.path={task_folder}"])
    OmegaConf.set_struct(cfg, False)
    cfg.model = OmegaConf.create({"_target_": "toys.WordVectors", "hidden": 24})
    folder = run(cfg)
    found = json.loads((folder / "result.json").read_text())
    assert found["status"] == "done"
    assert {"mlm_loss", "sst2/accuracy"} <= found["metrics"].keys()
    size = json.loads((folder / "model" / "config.json").read_text())["vocab_size"]
    assert found["realised"]["parameters"] == size * 24


def test_a_network_without_names_of_its_own_is_saved_with_its_head(tmp_path: Path) -> None:
    network, other = network_of(WordVectors(16), 3), network_of(WordVectors(16), 4)
    objectives = [MaskedLM(Replace()).build(each, VOCABULARY, seed) for seed, each in enumerate((network, other))]
    head, other_head = (objective.token_head for objective in objectives)
    assert head is not None
    assert other_head is not None
    checkpoint.save(network, head, tmp_path)
    checkpoint.load(other, tmp_path)
    assert torch.equal(network.table_VD, other.table_VD)
    assert checkpoint.load_head(other, other_head, tmp_path)
    batch = batch_of(0)
    assert torch.equal(head.logits(network(batch), batch), other_head.logits(other(batch), batch))
    with pytest.raises(UserError, match="finetune/head/layers=last"):
        network.states(batch)


def test_a_second_network_trains_and_resumes(tmp_path: Path) -> None:
    whole, _ = assert_resumes(None, ReplacedTokens(Replace()), [[batch_of(n)] for n in range(4)], tmp_path / "cut.ckpt")
    fresh = ReplacedTokens(Replace()).build(network_of(), VOCABULARY, 7)
    moved = {
        name for name, value in fresh.state_dict().items() if not torch.equal(value, whole.objective.state_dict()[name])
    }
    assert any(name.startswith("generator.backbone") for name in moved)
    assert "heads.replaced.score.weight" in moved


def test_a_detached_choice_gives_the_second_network_no_gradient() -> None:
    network = network_of()
    objective: Any = ReplacedTokens(Replace()).build(network, VOCABULARY, 7)
    losses, _ = objective(network, batch_of(0))
    losses["replaced"].backward()
    assert all(parameter.grad is None for parameter in objective.generator.parameters())
    assert network.table_VD.grad is not None


def test_initial_weights_of_a_network_are_drawn_once() -> None:
    plain, shared = network_of(), network_of()
    before = {name: value.clone() for name, value in shared.state_dict().items()}
    first, second = (ReplacedTokens(Replace()).build(shared, VOCABULARY, 7) for _ in range(2))
    assert all(torch.equal(value, before[name]) for name, value in shared.state_dict().items())
    assert all(torch.equal(value, plain.state_dict()[name]) for name, value in shared.state_dict().items())
    assert all(torch.equal(value, second.state_dict()[name]) for name, value in first.state_dict().items())
    other = ReplacedTokens(Replace()).build(network_of(), VOCABULARY, 8).state_dict()
    assert not torch.equal(
        first.state_dict()["generator.backbone.encoder.layer.0.output.dense.weight"],
        other["generator.backbone.encoder.layer.0.output.dense.weight"],
    )


def test_an_objective_without_a_head_on_tokens_has_no_held_out_metrics(
    arguments: list[str], trust: Callable[..., None]
) -> None:
    trust("toys")
    cfg = compose([*arguments, "trainer.log_every=1"])
    OmegaConf.set_struct(cfg, False)
    cfg.objective = OmegaConf.merge({"_target_": "toys.ReplacedTokens"}, {"view": cfg.objective.view})
    folder = run(cfg)
    found = json.loads((folder / "result.json").read_text())
    assert found["status"] == "done"
    assert found["metrics"] == {}
    assert found["baselines"] == {}
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert {"train/generator_loss", "train/replaced_loss"} <= lines[0].keys()


def test_each_task_has_its_head_and_its_denominator() -> None:
    network = network_of(WordVectors(16))
    heads = {"color": Topic(16, 2), "shape": Topic(16, 2)}
    objective = Objective(heads, weights={"shape": 0.5}, tasks={"color": "colors", "shape": "shapes"})
    first, second, third = batch_of(0, 4), batch_of(1, 3), batch_of(2, 2)
    step = [{**first, "task": "colors"}, {**second, "task": "shapes"}, {**third, "task": "colors"}]
    expected: dict[str, float] = {}
    with torch.no_grad():
        for name, batches, rows in (("color", (first, third), 6), ("shape", (second,), 3)):
            expected[name] = float(sum(heads[name](network(batch), batch) for batch in batches)) / rows
    learner = learner_of(network, objective, 1)
    fit(learner, [step], 1)
    assert {name: float(loss) for name, loss in learner.last["losses"].items()} == pytest.approx(expected, rel=1e-6)


def test_a_task_that_a_step_does_not_have_moves_nothing_of_its_head() -> None:
    network = network_of(WordVectors(16))
    objective = Objective({"color": Topic(16, 2), "shape": Topic(16, 2)}, tasks={"color": "colors", "shape": "shapes"})
    before = {name: value.clone() for name, value in objective.state_dict().items()}
    learner = learner_of(network, objective, 1)
    fit(learner, [[{**batch_of(0), "task": "colors"}]], 1)
    moved = {name for name, value in objective.state_dict().items() if not torch.equal(value, before[name])}
    assert moved == {"heads.color.classifier.weight", "heads.color.classifier.bias"}
    assert set(learner.last["losses"]) == {"color"}


def test_a_memory_is_carried_to_the_same_microbatch_detached_and_reset(tmp_path: Path) -> None:
    steps = [[batch_of(2 * n), batch_of(2 * n + 1, 3)] for n in range(4)]
    whole, resumed = assert_resumes(Remembering(16), MaskedLM(Replace()), steps, tmp_path / "cut.ckpt")
    given: list[Any] = whole.encoder.given  # type: ignore[assignment]
    assert given[:2] == [None, None]
    assert [len(state["sum_BD"]) for state in given[2:]] == [4, 3] * 3
    assert not any(state["sum_BD"].requires_grad for state in given[2:])
    seen: list[Any] = resumed.encoder.given  # type: ignore[assignment]
    assert all(torch.equal(a["sum_BD"], b["sum_BD"]) for a, b in zip(seen, given[4:], strict=True))
    network: Any = network_of(Remembering(16))
    state = {"sum_BD": torch.ones(4, 16)}
    forgetting, keeping = (
        network(batch_of(0) | {"begins_B": torch.tensor([begins] * 4)}, state) for begins in (True, False)
    )
    assert torch.equal(forgetting.state["sum_BD"] + 1.0, keeping.state["sum_BD"])


def test_memory_does_not_leave_a_checkpoint_of_a_network_without_one(tmp_path: Path) -> None:
    network = network_of(WordVectors(16))
    learner = learner_of(network, MaskedLM(Replace()).build(network, VOCABULARY, 7), 1)
    fit(learner, [[batch_of(0)]], 1).save_checkpoint(tmp_path / "last.ckpt")
    assert "carried" not in torch.load(tmp_path / "last.ckpt", weights_only=True)


def test_a_network_reads_spellings_and_counts(arguments: list[str], trust: Callable[..., None]) -> None:
    trust("toys_characters")
    cfg = compose([*arguments, "profile.workers=1"])
    OmegaConf.set_struct(cfg, False)
    cfg.model = OmegaConf.create({"_target_": "toys_characters.Characters", "hidden": 24})
    folder = run(cfg)
    assert json.loads((folder / "result.json").read_text())["status"] == "done"
    letters = load_file(folder / "model" / "model.safetensors")["network.letters.weight"]
    assert len(letters) < 150
    assert letters.std() > 0


def test_changes_of_an_encoder_are_chosen_from_the_users_folder(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trust: Callable[..., None]
) -> None:
    trust("toys_changes")
    monkeypatch.chdir(tmp_path)
    (folder := tmp_path / "conf" / "model" / "change").mkdir(parents=True)
    (folder / "shaw.yaml").write_text("# Vectors of distances\n_target_: toys_changes.Relative\nmost: 4\n")
    (folder / "near.yaml").write_text("# Neighbors in every other layer\n_target_: toys_changes.Alternating\n")
    chosen = ["+model/change@model.changes.scores=shaw", "+model/change@model.changes.sight=near"]
    done = run(compose([*arguments, *chosen, "model.changes.scores.most=2"]))
    found = json.loads((done / "result.json").read_text())
    assert found["status"] == "done"
    assert "mlm_loss" in found["metrics"]

    model = Pretrained(str(done / "model"))
    assert model.shape.changes["scores"] == Relative(2)  # type: ignore[attr-defined]
    changes = model.content()["shape"]["changes"]
    assert changes["scores"] == ["toys_changes.Relative", {"most": 2}]
    vocabulary = Vocabulary(json.loads((done / "model" / "config.json").read_text())["vocab_size"], 0, 1, 2, 3, 4, ())
    state = model.build(vocabulary, 5).state_dict()
    saved = load_file(done / "model" / "model.safetensors")
    name = "layer.0.attention.self.parts.scores.of_key_RE"
    assert torch.equal(state[f"backbone.encoder.{name}"], next(saved[key] for key in saved if key.endswith(name)))

    given = [text for text in arguments if not text.startswith("tokenizer.")]
    further = [f"model.name={done / 'model'}", f"tokenizer.name={done / 'model'}", "trainer.max_steps=1"]
    again = run(compose([*given, "model=pretrained", "tokenizer=pretrained", *further]))
    assert json.loads((again / "result.json").read_text())["status"] == "done"
