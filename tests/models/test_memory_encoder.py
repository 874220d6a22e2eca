"""A memory of layer inputs: segments see what one pass over the whole stream sees, as far as they remember."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from toy_training import VOCABULARY
from transformers import XLNetConfig, XLNetModel

from paribus.core.errors import UserError
from paribus.models.changes.learned_layers import LearnedLayers
from paribus.models.changes.shaw import Shaw
from paribus.models.changes.transformer_xl import TransformerXL
from paribus.models.memory import MemoryBert
from paribus.models.memory_encoder import MemoryEncoder


def network_of(memory: int, layers: int = 2, changes: Any = None, **more: Any) -> MemoryEncoder:
    sizes = {"hidden": 16, "heads": 2, "intermediate": 32, "positions": 64, "dropout": 0.0, "attention_dropout": 0.0}
    spec = MemoryBert(layers, **sizes, attention="left", memory=memory, changes=changes or {}, **more)  # type: ignore[arg-type]
    return spec.build(VOCABULARY, 3).eval()  # type: ignore[return-value]


def batch_of(ids_BL: Tensor, begins: bool | list[bool]) -> dict[str, Any]:
    rows, length = ids_BL.shape
    begins_B = torch.tensor(begins).expand(rows)
    lengths = {"length_B": torch.full((rows,), length), "full": True}
    return {"ids_BL": ids_BL, "part_BL": torch.zeros_like(ids_BL), "begins_B": begins_B, **lengths}


def read(network: MemoryEncoder, ids_BL: Tensor, size: int) -> Tensor:
    """[B, L, D]: the states of the stream in segments of this size."""
    state, found = None, []
    for at in range(0, ids_BL.shape[1], size):
        outputs = network(batch_of(ids_BL[:, at : at + size], at == 0), state)
        state = outputs.state
        found.append(outputs.hidden_BLD)
    return torch.cat(found, 1)


def stream(tokens: int, rows: int = 2, seed: int = 0) -> Tensor:
    return torch.randint(5, 97, (rows, tokens), generator=torch.Generator().manual_seed(seed))


def seen(network: MemoryEncoder, tokens: int, size: int, at: int) -> list[int]:
    """The tokens on which the state of a place depends."""
    ids_BL, changed = stream(tokens, 1), []
    usual_D = read(network, ids_BL, size)[0, at]
    for place in range(tokens):
        other_BL = ids_BL.clone()
        other_BL[0, place] = 5 + (other_BL[0, place] - 4) % 92
        if not torch.equal(read(network, other_BL, size)[0, at], usual_D):
            changed.append(place)
    return changed


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("changes", [{}, {"position": Shaw(4)}], ids=["transformer_xl", "shaw"])
@torch.inference_mode()
def test_segments_with_enough_memory_equal_one_pass(norm: str, changes: Any) -> None:
    network = network_of(64, changes=changes, norm=norm)
    ids_BL = stream(8)
    torch.testing.assert_close(read(network, ids_BL, 2), read(network, ids_BL, 8), atol=1e-6, rtol=0)


@torch.inference_mode()
def test_a_short_memory_gives_the_first_states_and_then_others() -> None:
    network, ids_BL = network_of(2), stream(8)
    short, whole = read(network, ids_BL, 2), read(network, ids_BL, 8)
    torch.testing.assert_close(short[:, :4], whole[:, :4], atol=1e-6, rtol=0)
    assert (short[:, 4:] - whole[:, 4:]).abs().max() > 1e-4


@torch.inference_mode()
def test_the_reach_is_memory_times_layers() -> None:
    assert seen(network_of(2), 12, 2, 11) == [6, 7, 8, 9, 10, 11]


@torch.inference_mode()
def test_visible_keys_of_segments_with_memory_and_without() -> None:
    network = network_of(4, layers=1)
    assert [len(seen(network, 12, 4, at)) for at in range(12)] == [1, 2, 3, 4, 5, 6, 7, 8, 5, 6, 7, 8]
    with network.remembering(0):
        assert [len(seen(network, 12, 4, at)) for at in range(12)] == [1, 2, 3, 4] * 3


@torch.inference_mode()
def test_same_length_shows_every_query_as_many_keys() -> None:
    network = network_of(4, layers=1, same_length=True)
    assert [len(seen(network, 9, 3, at)) for at in range(9)] == [1, 2, 3, 4, 4, 4, 4, 4, 4]


@torch.inference_mode()
def test_distances_above_the_clamp_are_alike() -> None:
    ids_BL = stream(8)
    usual, wide, narrow = (
        read(network_of(8, changes={"position": TransformerXL(clamp)}), ids_BL, 4) for clamp in (None, 8, 2)
    )
    assert torch.equal(wide, usual)
    torch.testing.assert_close(narrow[:, :3], usual[:, :3], atol=1e-6, rtol=0)
    assert (narrow[:, 4:] - usual[:, 4:]).abs().max() > 1e-5


@torch.inference_mode()
def test_rows_that_begin_forget_and_others_do_not() -> None:
    network, ids_BL = network_of(4), stream(8)
    first, second = ids_BL.split(4, 1)
    state = network(batch_of(first, True)).state
    mixed = network(batch_of(second, [True, False]), state).hidden_BLD
    alone = network(batch_of(second, True)).hidden_BLD
    torch.testing.assert_close(mixed[0], alone[0], atol=1e-6, rtol=0)
    torch.testing.assert_close(mixed[1], read(network, ids_BL, 4)[1, 4:], atol=1e-6, rtol=0)


@torch.inference_mode()
def test_padded_rows_leave_what_precedes_their_padding() -> None:
    network, ids_BL = network_of(3), stream(8, rows=1)
    padded = torch.cat([ids_BL[:, :5], torch.zeros(1, 3, dtype=torch.int64)], 1)
    state = network({**batch_of(padded, True), "length_B": torch.tensor([5]), "full": False}).state
    whole = network(batch_of(ids_BL[:, :5], True)).state
    for left, wanted in zip(state.input_BMD, whole.input_BMD, strict=True):
        torch.testing.assert_close(left, wanted, atol=1e-6, rtol=0)


def test_no_gradient_flows_into_the_memory() -> None:
    state = network_of(4)(batch_of(stream(4), True)).state
    assert not any(input_BMD.requires_grad for input_BMD in state.input_BMD)


@torch.inference_mode()
def test_states_equal_those_of_xlnet_that_reads_to_the_left() -> None:
    """The two differ by embeddings, biases of projections, and u and v for each layer: here they are made the same."""
    network = network_of(4)
    config = XLNetConfig(
        vocab_size=97, d_model=16, n_layer=2, n_head=2, d_inner=32, attn_type="uni", mem_len=4, dropout=0.0
    )
    other = XLNetModel(config).eval()
    for mine, theirs in zip(network.backbone.encoder.layer, other.layer, strict=True):
        attention, part = mine.attention.self, mine.attention.self.parts["position"]
        for name, ours in (("q", attention.query), ("k", attention.key), ("v", attention.value)):
            ours.bias.zero_()
            getattr(theirs.rel_attn, name).copy_(ours.weight.T.reshape(16, 2, 8))
        mine.attention.output.dense.bias.zero_()
        theirs.rel_attn.o.copy_(mine.attention.output.dense.weight.reshape(16, 2, 8))
        theirs.rel_attn.r.copy_(part.key.weight.T.reshape(16, 2, 8))
        theirs.rel_attn.r_w_bias.copy_(part.content_HE)
        theirs.rel_attn.r_r_bias.copy_(part.distance_HE)
        for ours, name in ((mine.intermediate.dense, "layer_1"), (mine.output.dense, "layer_2")):
            getattr(theirs.ff, name).load_state_dict(ours.state_dict())
    ids_BL, state, mems = stream(12), None, None
    for at in range(0, 12, 4):
        part = ids_BL[:, at : at + 4]
        batch = batch_of(part, at == 0)
        outputs = network(batch, state)
        state = outputs.state
        embedded = network.backbone.embeddings(part, token_type_ids=batch["part_BL"], position_ids=part)
        theirs_out = other(inputs_embeds=embedded, mems=mems, use_mems=True)
        mems = theirs_out.mems
        torch.testing.assert_close(outputs.hidden_BLD, theirs_out.last_hidden_state, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"memory": 0, "same_length": True}, "same_length=true without memory"),
        ({"memory": 4, "changes": {"position": LearnedLayers()}}, "LearnedLayers adds positions to what every layer"),
    ],
)
def test_a_memory_that_cannot_be_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        network_of(**settings)
