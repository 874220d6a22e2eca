"""Probes: what they find in given states, and the random labels of control tasks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

from paribus.core.errors import UserError
from paribus.finetuning.probe import MLP, Linear, draw_control
from paribus.tasks.examples import Example
from paribus.tasks.rows import FramedRows
from paribus.tasks.types.regression import Regression
from paribus.verdict.metrics import find_metric, in_points, is_averaged


@pytest.fixture
def states() -> Any:
    return torch.randn(2000, 12, generator=torch.Generator().manual_seed(0))


def accuracy(probe: Any, states: Any, labels: Any, seed: int = 0) -> float:
    read = probe.fit(states[:1500], labels[:1500], 2, seed)
    return float((read(states[1500:]).argmax(-1) == labels[1500:]).float().mean())


def test_a_linear_probe_finds_a_direction_and_no_exclusive_or(states: Any) -> None:
    direction, exclusive = (states[:, 3] > 0).long(), (states[:, 0] * states[:, 1] > 0).long()
    assert accuracy(Linear(), states, direction) > 0.97
    assert accuracy(Linear(), states, exclusive) < 0.6
    mlp = MLP(width=64, epochs=20, batch_size=50)
    assert accuracy(mlp, states, exclusive) > 0.9
    noise = torch.randint(0, 2, (2000,), generator=torch.Generator().manual_seed(1))
    assert accuracy(Linear(), states, noise) == pytest.approx(0.5, abs=0.07)


def test_an_mlp_depends_on_its_seed_alone(states: Any) -> None:
    labels = (states[:, 3] > 0).long()
    reads = [MLP(width=8, epochs=1).fit(states, labels, 2, seed)(states) for seed in (1, 1, 2)]
    assert torch.equal(reads[0], reads[1])
    assert not torch.equal(reads[0], reads[2])


@pytest.mark.parametrize("probe", [Linear(), MLP(width=64, epochs=20)])
def test_values_are_read(probe: Any, states: Any) -> None:
    values = 3.0 * states[:, 2] + 7.0
    found = probe.fit(states[:1500], values[:1500], 0, 0)(states[1500:])[:, 0]
    assert np.corrcoef(found.numpy(), values[1500:].numpy())[0, 1] > 0.98
    assert float((found - values[1500:]).abs().mean()) < 0.5


def test_layers_are_chosen_by_number() -> None:
    assert Linear().choose(2) == [0, 1, 2]
    assert Linear(layers=[-1, 0]).choose(3) == [0, 3]
    assert Linear(layers=1).choose(3) == [1]
    for layers in ([4], [], "some", 4, 1.5, [True]):
        with pytest.raises(UserError, match=r"finetune\.probe\.layers=.* does not fit a model of 3 layers: give all"):
            Linear(layers=layers).choose(3)
    with pytest.raises(UserError, match=r"finetune\.probe\.layers=\[3, -1\] names layer 3 of 3 twice"):
        Linear(layers=[3, -1]).choose(3)
    assert Linear(examples=3).sample(9).tolist() == [0, 4, 8]
    assert Linear(examples=None).sample(4).tolist() == [0, 1, 2, 3]


def test_control_labels_belong_to_words_and_are_as_frequent_as_the_real_ones() -> None:
    kinds = {"train": [f"w{n % 400}" for n in range(1200)], "validation": [f"w{n}" for n in range(0, 800, 2)]}
    labels = np.repeat([0, 1, 2], [600, 300, 300])
    drawn = draw_control(kinds, labels, 5)
    of_word: dict[str, set[int]] = {}
    for split, words in kinds.items():
        for word, label in zip(words, drawn[split].tolist(), strict=True):
            of_word.setdefault(word, set()).add(label)
    assert {len(each) for each in of_word.values()} == {1}
    counts = Counter(label for each in of_word.values() for label in each)
    assert counts == {0: 300, 1: 150, 2: 150}
    assert all(np.array_equal(drawn[split], draw_control(kinds, labels, 5)[split]) for split in kinds)
    assert not np.array_equal(drawn["train"], draw_control(kinds, labels, 6)["train"])


@pytest.mark.parametrize("name", ["accuracy_l3", "f1_l12", "control_accuracy_l0", "selectivity_l3", "accuracy_l3_test"])
def test_columns_of_layers_are_points_that_no_mean_averages(name: str) -> None:
    assert in_points(f"pos/{name}")
    assert not is_averaged(f"pos/{name}")
    assert is_averaged("pos/accuracy")


def test_columns_of_layers_are_of_the_kind_of_their_metric() -> None:
    assert find_metric("lm/perplexity_l3_test") is find_metric("lm/perplexity")
    assert find_metric("pos/mix_l3").name == "mix"
    assert not in_points("pos/centre_of_gravity")
    assert not in_points("pos/mix_kl")


def test_labels_of_values_are_numbers_and_kinds_are_whole_texts() -> None:
    items = Regression().list_probed(FramedRows(*[np.zeros(0)] * 5, 0), [Example("a", "b", 3), Example("c", None, 1)])
    assert items.label_I.dtype == np.float32
    assert items.kinds == ["a\tb", "c"]
