"""XLNet's network against the classes of `transformers`, its memory, and rows that are read backwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from toy_training import VOCABULARY
from transformers import AutoModelForCausalLM, XLNetConfig, XLNetLMHeadModel, XLNetModel

from paribus.core.errors import UserError
from paribus.models import checkpoint
from paribus.models.heads.vocabulary import TiedHead
from paribus.models.network import initialize
from paribus.models.pretrained import Pretrained
from paribus.models.xlnet import XLNet
from paribus.models.xlnet_network import XLNetNetwork


def network_of(**settings: Any) -> XLNetNetwork:
    found = XLNet(2, 32, 2, 48, dropout=0.0, initializer_range=0.3, **settings).build(VOCABULARY, 3)
    assert isinstance(found, XLNetNetwork)
    return found.eval()


def rows(*lengths: int, seed: int = 0) -> dict[str, Any]:
    """Random rows in two segments."""
    random, width = torch.Generator().manual_seed(seed), max(lengths)
    ids_BL = torch.randint(5, 97, (len(lengths), width), generator=random)
    ids_BL[:, 0] = VOCABULARY.cls
    length_B = torch.tensor(lengths)
    ids_BL[torch.arange(width) >= length_B[:, None]] = VOCABULARY.pad
    part_BL = (torch.arange(width) >= length_B[:, None] // 2).long()
    return {"ids_BL": ids_BL, "length_B": length_B, "part_BL": part_BL, "full": len(set(lengths)) == 1}


def published(batch: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `XLNetModel` for full rows: [CLS] at the end, in a segment of its own."""
    part_BL = batch["part_BL"].clone()
    part_BL[:, 0] = 2
    return {"input_ids": batch["ids_BL"].roll(-1, 1), "token_type_ids": part_BL.roll(-1, 1)}


def permuted(batch: dict[str, Any], seed: int = 1) -> dict[str, Any]:
    """The batch with a rank for each place, of which every third is asked for."""
    size = batch["ids_BL"].shape
    rank_BL = torch.rand(size, generator=torch.Generator().manual_seed(seed)).argsort(1) + 1
    asked_BL = (torch.arange(size[1]) % 3 == 1) & (torch.arange(size[1]) < batch["length_B"][:, None])
    rank_BL[~asked_BL] = 0
    slot_P = asked_BL.flatten().nonzero()[:, 0]
    return {**batch, "rank_BL": rank_BL, "slot_P": slot_P, "target_P": batch["ids_BL"].flatten()[slot_P], "full": False}


@torch.no_grad()
def test_the_content_stream_is_that_of_transformers() -> None:
    network, batch = network_of(), rows(11, 11, 11)
    outputs = network({**batch, "layers": True})
    theirs = network.backbone(**published(batch), use_mems=False, output_hidden_states=True)
    for ours_BLD, theirs_BLD in zip(outputs.layers or (), theirs.hidden_states, strict=True):
        assert torch.allclose(ours_BLD.roll(-1, 1), theirs_BLD, atol=1e-5)
    assert torch.allclose(outputs.row_BD, theirs.last_hidden_state[:, -1], atol=1e-5)


@torch.no_grad()
def test_the_query_stream_loses_what_the_class_of_transformers_loses(tmp_path: Path) -> None:
    network, batch = network_of(), permuted(rows(12, 12, 12))
    head = TiedHead(network)
    initialize(head, 1, 0.3)
    head.bias.normal_()
    checkpoint.save(network, head, tmp_path)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert isinstance(theirs, XLNetLMHeadModel)

    rank_BL = batch["rank_BL"].roll(-1, 1)
    hidden_BLL = (rank_BL[:, None] >= rank_BL[:, :, None]) & (rank_BL[:, None] > 0)
    map_BNL = torch.zeros(3, 4, 12)
    read_P = (batch["slot_P"] % 12 - 1) % 12
    map_BNL.view(12, 12)[torch.arange(12), read_P] = 1
    found = theirs.eval()(
        **published(batch),
        perm_mask=hidden_BLL.float(),
        target_mapping=map_BNL,
        labels=batch["target_P"].view(3, 4),
        use_mems=False,
    )
    outputs = network(batch)
    assert torch.allclose(head.logits(outputs, batch), found.logits.flatten(0, 1), atol=1e-5)
    assert float(head(outputs, batch)) / 12 == pytest.approx(float(found.loss), abs=1e-5)


@torch.no_grad()
def test_rows_of_unequal_length_are_read_as_if_they_were_alone() -> None:
    network, lengths = network_of(), (12, 7, 9)
    batch = permuted(rows(*lengths))
    together = network(batch).hidden_BLD
    for row, length in enumerate(lengths):
        alone = {name: batch[name][row : row + 1, :length] for name in ("ids_BL", "part_BL", "rank_BL")}
        asked_P = batch["slot_P"][batch["slot_P"] // 12 == row] - 12 * row
        found = network({**alone, "length_B": torch.tensor([length]), "slot_P": asked_P, "full": True})
        assert torch.allclose(together[row, :length], found.hidden_BLD[0], atol=1e-5)


@torch.no_grad()
def test_a_token_moves_the_states_that_may_see_it_and_no_others() -> None:
    network, batch = network_of(), permuted(rows(12))
    asked, rank_L = batch["slot_P"].tolist(), batch["rank_BL"][0]
    before = network(batch).hidden_BLD[0]
    for place in range(12):
        ids_BL = batch["ids_BL"].clone()
        ids_BL[0, place] = 5 if ids_BL[0, place] != 5 else 6
        moved_L = (network({**batch, "ids_BL": ids_BL}).hidden_BLD[0] != before).any(1)
        for query in asked:
            assert bool(moved_L[query]) == bool(rank_L[place] < rank_L[query]), "a query sees lower ranks, not itself"
        for other in set(range(12)) - set(asked):
            assert bool(moved_L[other]) == (place not in asked), "what is not asked for sees no target"


@torch.no_grad()
def test_segments_with_memory_are_those_of_transformers() -> None:
    network, begins = network_of(memory=6), torch.tensor([True, True])
    state, mems = None, None
    for step in range(3):
        batch = {**rows(8, 8, seed=step), "begins_B": begins, "reused_B": torch.tensor([4, 4])}
        outputs = network(batch, state)
        network.backbone.reuse_len = 4
        theirs = network.backbone(**published(batch), mems=mems, use_mems=True)
        assert torch.allclose(outputs.hidden_BLD.roll(-1, 1), theirs.last_hidden_state, atol=1e-5)
        state, mems, begins = outputs.state, theirs.mems, torch.tensor([False, False])
    assert state.states[0].shape == (2, 6, 32)


@torch.no_grad()
def test_a_row_that_begins_has_no_memory_and_its_neighbor_keeps_its_own() -> None:
    network, first, second = network_of(memory=8), rows(8, 8), rows(8, 8, seed=1)
    begins = {"begins_B": torch.tensor([True, True])}
    state = network({**first, **begins}).state
    outputs = network({**second, "begins_B": torch.tensor([True, False])}, state)
    alone = network({**second, **begins}).hidden_BLD
    assert torch.allclose(outputs.hidden_BLD[0], alone[0], atol=1e-5)
    assert not torch.allclose(outputs.hidden_BLD[1], alone[1], atol=1e-3)
    again = network({**rows(8, 8, seed=2), "begins_B": torch.tensor([False, False])}, outputs.state)
    only = network({**rows(8, 8, seed=2), "begins_B": torch.tensor([False, True])}, outputs.state)
    assert torch.equal(again.hidden_BLD[0], only.hidden_BLD[0])


@torch.no_grad()
def test_rows_that_are_read_backwards_are_the_second_half_of_a_batch_of_transformers() -> None:
    network, batch = network_of(), rows(9, 9)
    backwards = {**batch, "reversed_B": torch.tensor([False, True])}
    config = network.backbone.config
    theirs = XLNetModel(type(config)(**{**config.to_dict(), "bi_data": True})).eval()
    theirs.load_state_dict(network.backbone.state_dict())
    arguments = published(batch)
    for name, ours in (
        ("input_ids", batch["ids_BL"]),
        ("token_type_ids", batch["part_BL"].index_fill(1, torch.tensor(0), 2)),
    ):
        arguments[name] = torch.stack([arguments[name][0], ours[1].flip(0)])
    found = theirs(**arguments, use_mems=False).last_hidden_state
    hidden_BLD = network(backwards).hidden_BLD
    assert torch.allclose(hidden_BLD[0].roll(-1, 0), found[0], atol=1e-5)
    assert torch.allclose(hidden_BLD[1].flip(0), found[1], atol=1e-5)


def test_a_checkpoint_of_others_is_a_model(tmp_path: Path) -> None:
    config = XLNetConfig(vocab_size=97, d_model=32, n_layer=2, n_head=2, d_inner=48, pad_token_id=0)
    theirs = XLNetLMHeadModel(config).eval()
    theirs.lm_loss.bias.data.normal_()
    theirs.save_pretrained(tmp_path)
    model = Pretrained(str(tmp_path), dropout=0.0, attention_dropout=0.0)
    assert model.two_streams
    network, batch = model.build(VOCABULARY, 0).eval(), rows(9, 9)
    head = TiedHead(network)
    assert model.fill(network, head)
    with torch.no_grad():
        outputs = network({**batch, "slot_P": torch.arange(18)})
        wanted = theirs(**published(batch), use_mems=False).logits.roll(1, 1).flatten(0, 1)
        assert torch.allclose(head.logits(outputs, {"slot_P": torch.arange(18)}), wanted, atol=1e-4)
    XLNetLMHeadModel(XLNetConfig(**{**config.to_dict(), "clamp_len": 8})).save_pretrained(tmp_path)
    with pytest.raises(UserError, match="the XLNet has clamp_len=8"):
        _ = Pretrained(str(tmp_path)).two_streams


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        ({"attention_dropout": 0.2}, "XLNet has one rate"),
        ({"changes": {"window": object()}}, "a change of BERT's encoder"),
        ({"hidden": 33}, "not a multiple"),
    ],
)
def test_settings_that_it_does_not_have_are_refused(settings: dict[str, Any], cause: str) -> None:
    with pytest.raises(UserError, match=cause):
        XLNet(**{"layers": 1, "hidden": 32, "heads": 2, "intermediate": 48, **settings})
