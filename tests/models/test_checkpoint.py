"""A checkpoint holds every weight of the network, of its heads and of the objective."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from toy_training import VOCABULARY, batch_of, network_of
from toys import ReplacedTokens, WordVectors
from toys_outside import Normed

from paribus.core.checksums import SUMS
from paribus.core.errors import UserError
from paribus.corruption.views.replace import Replace
from paribus.finetuning import saved
from paribus.models import checkpoint


def test_weights_outside_the_backbone_are_kept(tmp_path: Path) -> None:
    network, other = network_of(Normed(16), 3), network_of(Normed(16), 4)
    network(batch_of(0))  # moves the running statistics
    with torch.no_grad():
        network.get_parameter("shift_D").fill_(0.5)
    checkpoint.save(network, None, tmp_path)
    checkpoint.load(other, tmp_path)
    wanted = network.state_dict()
    assert all(torch.equal(weight, wanted[name]) for name, weight in other.state_dict().items())
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["network.shift_D"]
    save_file(tensors, tmp_path / "model.safetensors")
    (tmp_path / SUMS).unlink()
    with pytest.raises(UserError, match=r"without network\.shift_D"):
        checkpoint.load(other, tmp_path)


def test_a_head_of_another_shape_is_refused(tmp_path: Path) -> None:
    network = network_of()
    checkpoint.save(network, nn.ModuleDict({"extra": nn.Linear(3, 2)}), tmp_path)
    with pytest.raises(
        UserError, match=r"head on tokens whose extra\.weight is \[2, 3\], not \[2, 4\]: set objective="
    ):
        checkpoint.load_head(network, nn.ModuleDict({"extra": nn.Linear(4, 2)}), tmp_path)


def test_a_weight_without_a_name_of_its_own_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = network_of()
    names = network.tensor_names()
    monkeypatch.setattr(network, "tensor_names", lambda: dict.fromkeys(names, "same"))
    with pytest.raises(UserError, match="would lose its weight"):
        checkpoint.save(network, None, tmp_path)


def test_the_parts_of_an_objective_are_kept(tmp_path: Path) -> None:
    first, second = (ReplacedTokens(Replace()).build(network_of(), VOCABULARY, seed) for seed in (7, 8))
    checkpoint.save_further(first.further_parts, tmp_path)
    checkpoint.load_further(second.further_parts, tmp_path)
    wanted = first.state_dict()
    assert all(torch.equal(weight, wanted[name]) for name, weight in second.state_dict().items())


def test_a_weight_that_no_part_holds_is_refused_before_training(
    arguments: list[str], trust: Callable[..., None], refused_run: Callable[..., str]
) -> None:
    trust("toys_outside")
    message = refused_run(*arguments, "objective._target_=toys_outside.Tempered")
    assert "would lose its weight temperature" in message


def test_statistics_that_finetuning_moved_are_saved() -> None:
    backbone, shaped = network_of(Normed(16)), network_of(Normed(16))
    shaped(batch_of(0))
    assert set(saved.trained(shaped, backbone)) == {
        "batch_norm.running_mean",
        "batch_norm.running_var",
        "batch_norm.num_batches_tracked",
    }
    assert saved.trained(network_of(WordVectors(16)), network_of(WordVectors(16))) == {}
