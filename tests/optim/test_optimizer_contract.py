"""What holds for every choice of the config group `optimizer`."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from paribus.core.build import build
from paribus.core.config import compose
from paribus.core.config_names import choices, conf_dir
from paribus.core.errors import UserError
from paribus.optim.spec import OptimizerSpec

CHOICES = choices("optimizer")


def setting(name: str) -> list[str]:
    """The choices that have a setting of this name."""
    files = {choice: (conf_dir() / "optimizer" / f"{choice}.yaml").read_text() for choice in CHOICES}
    return [choice for choice, text in files.items() if f"\n{name}: " in text]


def spec(choice: str, *overrides: str) -> OptimizerSpec:
    found: OptimizerSpec = build(compose(["scale=null", f"optimizer={choice}", *overrides]).optimizer)
    return found


def weights() -> list[tuple[str, nn.Parameter]]:
    random = torch.Generator().manual_seed(0)
    shapes = {"table": (7, 4), "dense.weight": (3, 4), "dense.bias": (3,), "norm.weight": (4,)}
    return [(name, nn.Parameter(torch.randn(shape, generator=random))) for name, shape in shapes.items()]


def train(named: list[tuple[str, nn.Parameter]], optimizer: torch.optim.Optimizer, first: int, last: int) -> None:
    for step in range(first, last):
        random = torch.Generator().manual_seed(step)
        for _, weight in named:
            weight.grad = torch.randn(weight.shape, generator=random)
        optimizer.step()


@pytest.mark.parametrize("choice", CHOICES)
def test_its_file_says_what_it_is(choice: str) -> None:
    assert (conf_dir() / "optimizer" / f"{choice}.yaml").read_text().startswith("# ")


@pytest.mark.parametrize("choice", CHOICES)
def test_it_lowers_a_loss(choice: str) -> None:
    named = weights()
    optimizer = spec(choice).build(named)
    losses = []
    for _ in range(20):
        loss = sum((weight.square().sum() for _, weight in named), torch.zeros(()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("choice", CHOICES)
def test_a_saved_state_goes_on_with_the_same_bits(choice: str) -> None:
    whole, cut = weights(), weights()
    train(whole, spec(choice).build(whole), 0, 6)
    before = spec(choice).build(cut)
    train(cut, before, 0, 3)
    resumed = spec(choice).build(cut)
    resumed.load_state_dict(before.state_dict())
    train(cut, resumed, 3, 6)
    assert all(torch.equal(one, other) for (_, one), (_, other) in zip(whole, cut, strict=True))


@pytest.mark.parametrize("choice", setting("weight_decay"))
def test_only_matrices_decay(choice: str) -> None:
    decayed, plain = spec(choice, "optimizer.weight_decay=0.5").build(weights()).param_groups
    assert {weight.ndim for weight in decayed["params"]} == {2}
    assert {weight.ndim for weight in plain["params"]} == {1}
    assert (decayed["weight_decay"], plain["weight_decay"]) == (0.5, 0.0)


@pytest.mark.parametrize("choice", setting("decay_vectors"))
def test_vectors_decay_if_asked(choice: str) -> None:
    for correction in ("true", "false") if choice in setting("bias_correction") else ("true",):
        moved = {}
        for asked in ("false", "true"):
            own = [f"optimizer.bias_correction={correction}"] if choice in setting("bias_correction") else []
            named = [("w", nn.Parameter(torch.ones(2, 2))), ("b", nn.Parameter(torch.ones(2)))]
            decay = ["optimizer.lr=0.1", "optimizer.weight_decay=0.5", f"optimizer.decay_vectors={asked}"]
            optimizer = spec(choice, *decay, *own).build(named)
            for _, weight in named:
                weight.grad = torch.zeros_like(weight)
            optimizer.step()
            moved[asked] = [bool((weight != 1).any()) for _, weight in named]
        assert moved == {"false": [True, False], "true": [True, True]}


@pytest.mark.parametrize("choice", CHOICES)
def test_shares_of_the_rate_make_groups_and_what_is_frozen_has_none(choice: str) -> None:
    named = weights()
    named[0][1].requires_grad_(False)
    groups = spec(choice).build(named, lambda name: 0.1 if name.startswith("norm") else 1.0).param_groups
    assert [(group["rate"], len(group["params"])) for group in groups] == [(1.0, 1), (1.0, 1), (0.1, 1)]


@pytest.mark.parametrize("choice", CHOICES)
def test_a_rate_that_is_not_positive_is_refused(choice: str) -> None:
    with pytest.raises(UserError, match=r"optimizer\.lr=0 is not positive"):
        spec(choice, "optimizer.lr=0")
