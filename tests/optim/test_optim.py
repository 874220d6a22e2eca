"""Parameter groups, rates over a run, initial weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf
from torch import nn
from toy_training import VOCABULARY, network_of

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.corruption.views.replace import Replace
from paribus.models.network import initialize
from paribus.objectives.mlm import MaskedLM
from paribus.optim.adamw import AdamW, AdamWRms, Lamb
from paribus.optim.lr_schedule import CURVES, Schedule
from paribus.optim.muon import Muon
from paribus.optim.spec import parameter_groups
from paribus.runs.identity import meaning
from paribus.training.description import Run
from paribus.training.learner import Pretraining
from paribus.training.run import run

PLAIN = """
from dataclasses import dataclass
from paribus.optim.spec import OptimizerSpec

@dataclass(frozen=True)
class Plain(OptimizerSpec):
    lr: float
    momentum: float = 0.0
    def build(self, named, rates=None):
        from torch.optim import SGD
        from paribus.optim.spec import parameter_groups
        return SGD(parameter_groups(named, 0.0, rates), lr=self.lr, momentum=self.momentum)
"""


def test_an_optimizer_of_your_own_is_one_class_and_one_yaml_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain_optimizer.py").write_text(PLAIN)
    (tmp_path / "conf" / "optimizer").mkdir(parents=True)
    (tmp_path / "conf" / "optimizer" / "plain.yaml").write_text("_target_: plain_optimizer.Plain\nlr: 0.5\n")
    (tmp_path / "conf" / "trusted.yaml").write_text("trusted: [plain_optimizer]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    run = Run.of(compose(["scale=test", "optimizer=plain", "+optimizer.momentum=0.9"]))
    weight = nn.Parameter(torch.tensor([[1.0, -2.0]]))
    optimizer = run.optimizer.build([("w", weight)])
    weight.grad = torch.ones(1, 2)
    optimizer.step()
    optimizer.step()
    rate = run.optimizer.lr
    assert weight.tolist()[0] == pytest.approx([1.0 - 2.9 * rate, -2.0 - 2.9 * rate])


def test_vectors_do_not_decay() -> None:
    module = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 3), nn.LayerNorm(3))
    decayed, plain = parameter_groups(module.named_parameters(), 0.01)
    assert [tuple(p.shape) for p in decayed["params"]] == [(5, 4), (3, 4)]
    assert {tuple(p.shape) for p in plain["params"]} == {(3,)}
    assert len(plain["params"]) == 3
    assert (decayed["weight_decay"], plain["weight_decay"]) == (0.01, 0.0)


def test_vectors_with_a_rate_of_their_own_decay_if_asked() -> None:
    rated = parameter_groups([("b", nn.Parameter(torch.ones(2)))], 0.5, lambda name: 0.1, True)
    assert rated[0]["weight_decay"] == 0.5


def test_a_run_keeps_its_name_if_vectors_do_not_decay() -> None:
    plain = {"_target_": "paribus.optim.adamw.AdamW", "lr": 0.1}
    assert meaning({**plain, "decay_vectors": False}) == meaning(plain)
    assert meaning({**plain, "decay_vectors": True}) != meaning(plain)


def test_adamw_is_the_published_update() -> None:
    weight = nn.Parameter(torch.tensor([[1.0, -2.0]]))
    optimizer = AdamW(lr=0.1, betas=(0.9, 0.99), eps=1e-6, weight_decay=0.5).build([("w", weight)])
    gradient = np.array([[0.3, -0.4]])
    expected, first, second = np.array([[1.0, -2.0]]), 0.0, 0.0
    for step in (1, 2, 3):
        weight.grad = torch.tensor(gradient, dtype=torch.float32)
        optimizer.step()
        first, second = 0.9 * first + 0.1 * gradient, 0.99 * second + 0.01 * gradient**2
        update = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.99**step)) + 1e-6)
        expected = expected - 0.1 * 0.5 * expected - 0.1 * update
    assert np.allclose(weight.detach().numpy(), expected, atol=1e-6)


def test_lamb_moves_a_matrix_by_a_share_of_its_norm() -> None:
    named = [("w", nn.Parameter(torch.tensor([[3.0, -4.0]]))), ("b", nn.Parameter(torch.tensor([3.0, -4.0])))]
    optimizer = Lamb(lr=0.1, betas=(0.9, 0.99), eps=1e-6, weight_decay=0.5).build(named)
    gradient, decays = np.array([0.3, -0.1]), (0.5, 0.0)
    expected, first, second = [np.array([3.0, -4.0])] * 2, 0.0, 0.0
    for step in (1, 2, 3):
        for _, weight in named:
            weight.grad = torch.tensor(gradient, dtype=torch.float32).reshape(weight.shape)
        optimizer.step()
        first, second = 0.9 * first + 0.1 * gradient, 0.99 * second + 0.01 * gradient**2
        ratio = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.99**step)) + 1e-6)
        moves = [ratio + decay * weight for decay, weight in zip(decays, expected, strict=True)]
        moves[0] = moves[0] * np.linalg.norm(expected[0]) / np.linalg.norm(moves[0])
        expected = [weight - 0.1 * move for weight, move in zip(expected, moves, strict=True)]
    for (_, weight), wanted in zip(named, expected, strict=True):
        assert np.allclose(weight.detach().numpy().ravel(), wanted, atol=1e-6)


def test_a_weight_of_zeros_moves_under_lamb() -> None:
    weight = nn.Parameter(torch.zeros(2, 2))
    optimizer = Lamb(lr=0.1).build([("w", weight)])
    weight.grad = torch.ones(2, 2)
    optimizer.step()
    assert torch.allclose(weight, torch.full((2, 2), -0.1), atol=1e-5)


@pytest.mark.parametrize("kind", [Lamb, AdamWRms])
def test_other_kinds_of_adam_are_refused_by_name(kind: type[Lamb]) -> None:
    with pytest.raises(UserError, match="decoupled"):
        kind(lr=0.1, decoupled=False)


@pytest.mark.parametrize(
    ("curve", "done", "factor"),
    [
        ("linear", 0.05, 0.5),
        ("linear", 0.1, 1.0),
        ("linear", 0.55, 0.5),
        ("linear", 1.0, 0.0),
        ("cosine", 0.55, 0.5),
        ("cosine", 1.0, 0.0),
        ("constant", 0.9, 1.0),
        ("inverse_sqrt", 0.4, 0.5),
        ("inverse_sqrt", 0.1, 1.0),
    ],
)
def test_curves(curve: str, done: float, factor: float) -> None:
    assert Schedule(curve, warmup=0.1).factor(done) == pytest.approx(factor)


def test_a_rise_that_is_a_factor_of_the_curve_is_that_of_electra_and_gpt() -> None:
    electra = Schedule("linear", warmup=0.01, rise="product")
    rates = [5e-4 * electra.factor(step / 1e6) for step in (0, 5_000, 10_000, 500_000)]
    assert rates == pytest.approx([0.0, 2.4875e-4, 4.95e-4, 2.5e-4])
    gpt = Schedule("linear", warmup=0.002, rise="product")
    assert [gpt.factor(step / 1000) for step in (0, 1, 2, 3, 500)] == pytest.approx([0.0, 0.4995, 0.998, 0.997, 0.5])
    assert Schedule("linear", warmup=0.0, rise="product").factor(0.25) == 0.75


def test_a_late_decay_keeps_the_peak_until_the_end_of_the_run() -> None:
    schedule = Schedule("linear", warmup=0.1, decay=0.2)
    assert [schedule.factor(done) for done in (0.05, 0.1, 0.5, 0.8)] == pytest.approx([0.5, 1.0, 1.0, 1.0])
    assert [schedule.factor(done) for done in (0.9, 0.95, 1.0)] == pytest.approx([0.5, 0.25, 0.0])
    assert Schedule("linear", warmup=0.1, decay=0.9).factor(0.55) == Schedule("linear", warmup=0.1).factor(0.55)


def test_every_curve_rises_then_never_rises_again() -> None:
    for curve in CURVES:
        factors = [Schedule(curve, warmup=0.1).factor(step / 1000) for step in range(1, 1001)]
        peak = int(np.argmax(factors))
        assert np.all(np.diff(factors[: peak + 1]) > 0)
        assert np.all(np.diff(factors[peak:]) <= 1e-12)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"curve": "zigzag"}, "curve=zigzag"),
        ({"curve": "linear", "warmup": 1.0}, "warmup"),
        ({"curve": "linear", "position": "hours"}, "hours"),
        ({"curve": "linear", "rise": "slow"}, "use linear, none, product"),
        ({"curve": "inverse_sqrt", "rise": "product"}, "rise=product"),
        ({"curve": "constant", "decay": 0.2}, "use linear or cosine"),
        ({"curve": "linear", "warmup": 0.5, "decay": 0.6}, "decay=0.6 does not fit"),
    ],
)
def test_bad_schedules_are_named(settings: dict[str, object], named: str) -> None:
    with pytest.raises(UserError, match=named):
        Schedule(**settings)  # type: ignore[arg-type]


def test_muon_moves_matrices_by_an_orthogonal_step_of_the_size_of_adamws() -> None:
    random = torch.Generator().manual_seed(0)
    matrix, table, bias = (nn.Parameter(torch.randn(shape, generator=random)) for shape in ((24, 8), (9, 8), (8,)))
    named = [("layer.weight", matrix), ("table.weight", table), ("layer.bias", bias)]
    before = [parameter.detach().clone() for _, parameter in named]
    optimizer = Muon(lr=0.1, weight_decay=0.0).build(named, in_layers=lambda name: name.startswith("layer."))
    for _, parameter in named:
        parameter.grad = torch.randn(parameter.shape, generator=random)
    optimizer.step()
    moved, by_adam = before[0] - matrix.detach(), torch.optim.AdamW([nn.Parameter(before[1])], lr=0.1, eps=1e-6)
    step = moved / (0.1 * 0.2 * 24**0.5)  # singular values near 1: five iterations leave them in 0.7 to 1.2
    assert 0.6 < torch.linalg.svdvals(step).min() < torch.linalg.svdvals(step).max() < 1.3
    assert moved.square().mean().sqrt().item() == pytest.approx(0.1 * 0.2, rel=0.25)
    (other,) = by_adam.param_groups[0]["params"]
    other.grad = table.grad
    by_adam.param_groups[0]["weight_decay"] = 0.0
    by_adam.step()
    assert torch.allclose(table, other, atol=1e-6)
    assert not torch.equal(bias, before[2])


def test_muon_is_told_which_matrices_are_inside_layers() -> None:
    network = network_of()
    objective = MaskedLM(Replace()).build(network, VOCABULARY, 7)
    learner = Pretraining(
        network, objective, Muon(lr=0.1), Schedule("constant"), total_steps=1, total_tokens=0, clip=None, seed=1
    )
    names = {id(parameter): name for name, parameter in learner.named_parameters()}
    optimizer = learner.configure_optimizers()
    by_muon = {names[id(p)] for group in optimizer.param_groups if group["by"] == "muon" for p in group["params"]}
    layer = "encoder.backbone.encoder.layer.0."
    assert {name.removeprefix(layer) for name in by_muon} == {
        "attention.self.query.weight",
        "attention.self.key.weight",
        "attention.self.value.weight",
        "attention.output.dense.weight",
        "intermediate.dense.weight",
        "output.dense.weight",
    }


def test_muon_without_a_matrix_of_its_own_is_refused(arguments: list[str], trust: Callable[..., None]) -> None:
    trust("toys_states")
    cfg = compose([*arguments, "optimizer=muon"])
    OmegaConf.set_struct(cfg, False)
    cfg.model = OmegaConf.create({"_target_": "toys_states.Neighbors", "hidden": 24})
    with pytest.raises(
        UserError, match=r"optimizer \(Muon\) works layer by layer.*write Mixer\.depth_of, or set optimizer="
    ):
        run(cfg)


@pytest.mark.parametrize("kind", [AdamW, Muon])
@pytest.mark.parametrize("betas", [(0.9,), (0.9, 1.0), (-0.1, 0.9)])
def test_bad_betas_are_named(kind: type[AdamW | Muon], betas: tuple[float, ...]) -> None:
    with pytest.raises(UserError, match=r"optimizer\.betas"):
        kind(lr=1.0, betas=betas)


def test_a_momentum_that_never_moves_is_named() -> None:
    with pytest.raises(UserError, match=r"optimizer\.momentum=1.* is not in \[0, 1\)"):
        Muon(lr=1.0, momentum=1.0)


def test_initial_weights_depend_on_seed_and_name_alone() -> None:
    class Two(nn.Module):
        def __init__(self, extra: bool) -> None:
            super().__init__()
            if extra:
                self.before = nn.Linear(3, 3)
            self.table = nn.Embedding(6, 4, padding_idx=1)
            self.dense = nn.Linear(4, 200)

    plain, more, other = Two(False), Two(True), Two(False)
    initialize(plain, 5, 0.02)
    initialize(more, 5, 0.02)
    initialize(other, 6, 0.02)
    assert torch.equal(plain.dense.weight, more.dense.weight)
    assert not torch.equal(plain.dense.weight, other.dense.weight)
    assert plain.dense.weight.std().item() == pytest.approx(0.02, rel=0.1)
    assert plain.table.weight[1].abs().sum() == 0
    assert plain.dense.bias.abs().sum() == 0
