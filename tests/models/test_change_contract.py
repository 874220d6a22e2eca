"""What holds for every packaged choice of a change: it composes, trains two steps, and counts its costs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from paribus.core.build import build
from paribus.core.config import compose
from paribus.core.config_names import choices
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.objectives.mlm import MaskedLM

COUNTED: Any = SimpleNamespace(count_V=np.arange(40))
VOCABULARY = Vocabulary(size=40, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4), entries=COUNTED)
CHOICES = [
    *(f"+model/change@model.changes.part={name}" for name in choices("model/change")),
    *(f"model/position={name}" for name in choices("model/position")),
]
OF_ONE_NORM = {"part=sandwich": "pre", "part=deepnorm": "post"}


def spec_of(choice: str, norm: str) -> Any:
    """Skips the test for a placement of norms that the choice refuses."""
    if OF_ONE_NORM.get(choice.rpartition(".")[2], norm) != norm:
        pytest.skip("it is refused")
    sizes = ["model.hidden=32", "model.intermediate=66", f"model.norm={norm}"]
    return build(compose(["scale=test", *sizes, choice]).model)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("choice", CHOICES)
def test_a_choice_composes_and_trains_two_steps(choice: str, norm: str) -> None:
    network = spec_of(choice, norm).build(VOCABULARY, 0)
    objective = MaskedLM(None).build(network, VOCABULARY, 0)
    parameters = {**dict(network.named_parameters()), **dict(objective.named_parameters(prefix="objective"))}
    before = {name: weight.detach().clone() for name, weight in parameters.items()}
    optimizer, draw = torch.optim.AdamW(parameters.values(), lr=1e-2), torch.Generator().manual_seed(0)
    for _ in range(2):
        batch: dict[str, Any] = {
            "ids_BL": torch.randint(5, 40, (2, 16), generator=draw),
            "length_B": torch.tensor([16, 11]),
            "part_BL": torch.zeros(2, 16, dtype=torch.int64),
            "slot_P": torch.tensor([0, 5, 19]),
            "target_P": torch.tensor([7, 8, 9]),
            "full": False,
        }
        losses, _ = objective(network, batch)
        losses["mlm"].backward()
        assert torch.isfinite(losses["mlm"])
        optimizer.step()
        optimizer.zero_grad()
    still = [name for name, weight in parameters.items() if torch.equal(weight, before[name])]
    assert not [name for name in still if not name.endswith("key.bias")], "every weight learns"


@pytest.mark.parametrize("choice", CHOICES)
def test_the_costs_of_a_choice_are_those_of_its_matrix_products(choice: str) -> None:
    """Those that are computed; a choice that hides keys is counted without them."""
    spec = spec_of(choice, "pre" if choice.endswith("sandwich") else "post")
    if any(change.seen(spec, 16.0) < 16 for change in spec.changes.values()):
        pytest.skip("it computes scores that it hides")
    batch = {
        "ids_BL": torch.randint(5, 40, (64, 16)),  # what is computed once for all rows counts little
        "length_B": torch.full((64,), 16),
        "part_BL": torch.zeros(64, 16, dtype=torch.int64),
        "full": True,
        "predicts_tokens": True,
    }
    network = spec.build(VOCABULARY, 0)
    with FlopCounterMode(display=False) as counted:
        network(batch)
    assert spec.forward_flops(64 * 16.0, 16.0) == pytest.approx(counted.get_total_flops(), rel=0.05)
