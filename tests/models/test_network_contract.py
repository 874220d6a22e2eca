"""What holds for the network of every choice of the config group `model`, at the smallest size."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from paribus.core.build import build
from paribus.core.config import compose
from paribus.core.config_names import choices
from paribus.core.errors import UserError
from paribus.data.sequences import Sequences
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.models import checkpoint
from paribus.models.network import Network, as_batch
from paribus.models.t5 import ARCHITECTURES

SPELLED: Any = SimpleNamespace(spellings=tuple(f"word{number}" for number in range(100)))
VOCABULARY = Vocabulary(100, 0, 1, 2, 3, 4, (0, 1, 2, 3, 4, *range(90, 100)), 10, 99, entries=SPELLED)
SMALL = {
    "layers": 2, "hidden": 32, "heads": 2, "intermediate": 48, "positions": 40, "key_width": 16, "dropout": 0.0,
    "attention_dropout": 0.0,
}  # fmt: skip
VARIANTS = {
    "pre_norm": ["model=bert_tiny", "model.norm=pre"],
    "left": ["model=bert_tiny", "model.attention=left"],
    "right": ["model=bert_tiny", "model.attention=right"],
    "two_way": ["model=bert_tiny", "model.attention=two_way"],
    "rotary": ["model=bert_tiny", "model/position=rotary"],
    **{name: ["model=t5_tiny", f"model.architecture={name}"] for name in ARCHITECTURES},
}
CHECKPOINTS = ("pretrained",)  # another model's networks: tests/models/test_pretrained.py


def small(overrides: list[str]) -> Any:
    """A model with its own settings, but for the numbers of its size."""
    spec = build(compose(["scale=null", *overrides]).model)
    own = {name: SMALL[name] for name in {field.name for field in fields(spec)} & set(SMALL)}
    narrow = {"embedding": 16} if getattr(spec, "embedding", None) else {}
    return replace(spec, **own, **narrow)


def distinct() -> dict[str, Any]:
    """One model of those that differ in their size alone."""
    given = {choice: [f"model={choice}"] for choice in choices("model") if choice not in CHECKPOINTS}
    found: dict[str, Any] = {}
    for name, overrides in {**given, **VARIANTS}.items():
        if (spec := small(overrides)) not in found.values():
            found[name] = spec
    return found


MODELS = distinct()


def network_of(name: str, seed: int = 3) -> Network:
    found: Network = MODELS[name].build(VOCABULARY, seed)
    return found.eval()


def rows(seed: int, lengths: list[int]) -> Sequences:
    """Random rows, each with its end, padded."""
    random = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, 90, (len(lengths), max(lengths)), generator=random)
    for row, length in enumerate(lengths):
        ids[row, length - 1], ids[row, length:] = VOCABULARY.sep, VOCABULARY.pad
    return Sequences(ids.numpy(), torch.tensor(lengths).numpy())


def batch_of(name: str, kept: list[int] | None = None) -> dict[str, Any]:
    """Rows of unequal lengths, or some of them alone; a model that writes also gets what it writes."""
    read, written = rows(1, [40, 23, 31]), rows(2, [9, 17, 5])
    if kept is not None:
        read, written = (
            Sequences(part.ids_BL[kept, : part.length_B[kept].max()], part.length_B[kept]) for part in (read, written)
        )
    if MODELS[name].writes_text:
        return as_batch(MODELS[name].collator.join(read, written, VOCABULARY.pad) | {"counts": {}})
    parts_BL = torch.zeros(read.ids_BL.shape, dtype=torch.long).numpy()
    return as_batch({"ids_BL": read.ids_BL, "length_B": read.length_B, "part_BL": parts_BL, "counts": {}})


@pytest.mark.parametrize("name", MODELS)
def test_initial_weights_follow_from_the_seed(name: str) -> None:
    one, again, other = network_of(name), network_of(name), network_of(name, 4)
    assert all(torch.equal(tensor, again.state_dict()[key]) for key, tensor in one.state_dict().items())
    assert not torch.equal(one.table_VD, other.table_VD)


@pytest.mark.parametrize("name", MODELS)
def test_a_checkpoint_gives_the_same_network_back(name: str, tmp_path: Path) -> None:
    network, other = network_of(name), network_of(name, 9)
    checkpoint.save(network, None, tmp_path)
    count = other.parameter_count()
    checkpoint.load(other, tmp_path)
    assert other.parameter_count() == count, "loading keeps weights shared"
    assert all(torch.equal(tensor, other.state_dict()[key]) for key, tensor in network.state_dict().items())
    with torch.no_grad():
        assert torch.equal(other(batch_of(name)).hidden_BLD, network(batch_of(name)).hidden_BLD)
    narrow = replace(MODELS[name], hidden=16).build(VOCABULARY, 0)
    with pytest.raises(UserError, match="does not fit the model"):
        checkpoint.load(narrow, tmp_path)


@pytest.mark.parametrize("name", [name for name in MODELS if not MODELS[name].writes_text])
def test_padding_and_company_move_no_state(name: str) -> None:
    network = network_of(name)
    with torch.no_grad():
        together = network(batch_of(name)).hidden_BLD
        for row, length in enumerate((40, 23, 31)):
            alone = network(batch_of(name, [row])).hidden_BLD[0]
            assert torch.allclose(together[row, :length], alone[:length], atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_every_weight_has_a_depth_and_every_matrix_a_place(name: str) -> None:
    network = network_of(name)
    weights = dict(network.named_parameters())
    assert {network.depth_of(parameter) for parameter in weights} <= set(range(network.depth + 1))
    table = next(parameter for parameter, weight in weights.items() if weight is network.table_VD)
    assert network.depth_of(table) == 0
    modules = dict(network.backbone.named_modules())
    kinds = {kind for kind, module in network.matrices() if module in modules}
    assert kinds == ({"query", "key", "value", "dense"} if MODELS[name].open_layers else set())
    assert sum(weight.numel() for weight in weights.values()) == network.parameter_count()


@pytest.mark.parametrize("name", MODELS)
def test_a_cost_grows_with_the_tokens(name: str) -> None:
    once, twice = (MODELS[name].forward_flops(tokens, 32.0, tokens / 4, tokens / 32) for tokens in (1024.0, 2048.0))
    assert 0 < once < twice <= 2 * once * (1 + 1e-9)
