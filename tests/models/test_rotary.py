"""Rotary positions are exact in every path: attention, the last layer's shortcut, checkpoints and costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM
from transformers.models.modernbert.modeling_modernbert import apply_rotary_pos_emb

from paribus.core.errors import UserError
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.models import checkpoint, last_layer, rotary
from paribus.models.attention import kernel
from paribus.models.bert import Bert
from paribus.models.change import Rotary
from paribus.models.heads.head import name_places
from paribus.models.heads.vocabulary import MaskedLMHead
from paribus.models.pretrained import Pretrained
from paribus.models.rotary import RotaryPart

B, L, V = 3, 12, 40
ROTARY = Bert(
    2,
    16,
    2,
    32,
    positions=64,
    dropout=0.0,
    attention_dropout=0.0,
    initializer_range=0.3,
    changes={"position": Rotary()},
)
VOCABULARY = Vocabulary(size=V, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4))
SHAPES = [
    ROTARY,
    replace(ROTARY, norm="pre"),
    replace(ROTARY, attention="left"),
    replace(ROTARY, attention="right"),
    replace(ROTARY, sharing="all", embedding=8),
]


def batch_of(shift: int = 0, full: bool = False) -> dict[str, Any]:
    draw = torch.Generator().manual_seed(1)
    slot_P = torch.tensor([2, 5, L + 3, 2 * L + 1])
    return {
        "ids_BL": torch.randint(5, V, (B, L), generator=draw).roll(shift, 1),
        "length_B": torch.full((B,), L) if full else torch.tensor([L, 9, 11]),
        "part_BL": torch.zeros(B, L, dtype=torch.int64),
        "slot_P": slot_P,
        "target_P": torch.randint(5, V, slot_P.shape, generator=draw),
        "full": full,
    }


def turn(
    width: int,
    base: float,
    query: torch.Tensor,
    key: torch.Tensor,
    scale: float = 1.0,
    place_BQ: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    place_1K = torch.arange(key.shape[2])[None]
    return RotaryPart(width, base).turn_scaled(query, key, place_1K if place_BQ is None else place_BQ, place_1K, scale)


def rotate(state_LE: torch.Tensor, base: float) -> torch.Tensor:
    """RoFormer, equation 15, in float64: pair by pair."""
    rotated = torch.empty_like(state_LE, dtype=torch.float64)
    width = state_LE.shape[-1]
    for place, state_E in enumerate(state_LE.double()):
        for pair in range(width // 2):
            angle = torch.tensor(place * base ** (-2 * pair / width), dtype=torch.float64)
            even, odd = state_E[2 * pair], state_E[2 * pair + 1]
            rotated[place, 2 * pair] = even * angle.cos() - odd * angle.sin()
            rotated[place, 2 * pair + 1] = even * angle.sin() + odd * angle.cos()
    return rotated


def test_golden_scores() -> None:
    """The reference's query and key: their scores depend on the distance alone."""
    query, key = torch.tensor([1.0, 0, 0.5, -1]), torch.tensor([0.2, 0.3, -0.4, 1])
    query_LE, key_LE = (state.repeat(13, 1)[None, None] for state in (query, key))
    turned, keys = (state[0, 0] for state in turn(4, 10000.0, query_LE, key_LE))
    for at, seen, score in ((5, 3, -1.008200), (12, 10, -1.008200), (3, 5, -1.557778)):
        assert float(turned[at] @ keys[seen]) == pytest.approx(score, abs=1e-5)
    torch.testing.assert_close(turned[1], torch.tensor([0.540302, 0.841471, 0.509975, -0.994950]), atol=1e-6, rtol=0)


@pytest.mark.parametrize("base", [10000.0, 100.0])
def test_as_the_formula_forward_and_backward(base: float) -> None:
    state_BHLE = torch.randn(2, 3, L, 8, generator=torch.Generator().manual_seed(0), requires_grad=True)
    turned, _ = turn(8, base, state_BHLE, state_BHLE)
    for row in range(2):
        expected = rotate(state_BHLE[row, 1].detach(), base)
        torch.testing.assert_close(turned[row, 1].double(), expected, atol=1e-6, rtol=1e-6)
    weight = torch.randn(turned.shape, generator=torch.Generator().manual_seed(1))
    (turned * weight).sum().backward()
    assert state_BHLE.grad is not None
    kept, weighted = ((s * s).sum() for s in (state_BHLE.grad, weight))
    torch.testing.assert_close(kept, weighted)  # a rotation keeps lengths
    back = rotate(state_BHLE.grad[0, 1], base)  # forward again gives the gradient of what was rotated
    torch.testing.assert_close(back, weight[0, 1].double(), atol=1e-5, rtol=1e-5)


def test_shorter_numbers_are_rotated_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = torch.Generator().manual_seed(0)
    query, key = torch.randn(5, L, 2, 8, generator=draw).transpose(1, 2), torch.randn(5, 2, L, 8, generator=draw)
    place_BQ = torch.randint(0, L, (5, 3), generator=draw)
    asked = query[:, :, :3]
    monkeypatch.setattr(rotary, "PART", 200)
    short = turn(8, 10000.0, asked.bfloat16(), key.bfloat16(), 0.5, place_BQ)
    for own, other in zip(short, turn(8, 10000.0, asked, key, 0.5, place_BQ), strict=True):
        assert own.dtype == torch.bfloat16
        torch.testing.assert_close(own.float(), other, atol=0.03, rtol=0.01)


def test_as_modernbert_up_to_the_order_of_features() -> None:
    """ModernBERT pairs feature i with i + width / 2, we pair 2i with 2i + 1."""
    draw, width = torch.Generator().manual_seed(0), 8
    query, key = (torch.randn(2, 2, L, width, generator=draw) for _ in range(2))
    ours = turn(width, 10000.0, query, key)
    halves = torch.cat([torch.arange(0, width, 2), torch.arange(1, width, 2)])
    angle = torch.arange(L)[:, None] * 10000.0 ** -(torch.arange(0, width, 2) / width)
    cos, sin = (torch.cat([part, part], -1)[None] for part in (angle.cos(), angle.sin()))
    theirs = apply_rotary_pos_emb(query[..., halves], key[..., halves], cos, sin)
    for own, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(own[..., halves], other, atol=1e-5, rtol=1e-5)


def test_the_form_for_the_compiler_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    query, key, place_BQ = torch.randn(2, 2, 3, 8), torch.randn(2, 2, L, 8), torch.tensor([[0, 4, 7], [0, 1, 11]])
    plain = turn(8, 10000.0, query, key, 0.25, place_BQ)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    for own, other in zip(plain, turn(8, 10000.0, query, key, 0.25, place_BQ), strict=True):
        torch.testing.assert_close(own, other, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("spec", SHAPES)
def test_places_that_are_read_have_the_states_of_the_whole_layer(
    spec: Bert, full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, batch = spec.build(VOCABULARY, 0), batch_of(full=full)
    whole = encoder(batch).at(batch["slot_P"])
    monkeypatch.setattr(last_layer, "MOST", 1.0)
    read = name_places([MaskedLMHead(encoder)], batch)
    torch.testing.assert_close(encoder(read).at(batch["slot_P"]), whole, atol=1e-5, rtol=1e-5)


def test_both_directions_side_by_side_know_the_order_of_their_text() -> None:
    encoder = replace(ROTARY, attention="two_way").build(VOCABULARY, 0)
    batch = batch_of(full=True)
    swapped = {**batch, "ids_BL": batch["ids_BL"][:, [0, 1, 3, 2, *range(4, L)]]}
    assert not torch.allclose(encoder(batch).hidden_BLD[:, 5], encoder(swapped).hidden_BLD[:, 5], atol=1e-4)


def test_states_depend_on_distances_alone() -> None:
    encoder = ROTARY.build(VOCABULARY, 0)
    ids_1L = torch.randint(5, V, (1, 6), generator=torch.Generator().manual_seed(0))
    batch = {"part_BL": torch.zeros(1, 6, dtype=torch.int64), "length_B": torch.tensor([6]), "full": True}
    here = encoder({**batch, "ids_BL": ids_1L}).hidden_BLD
    padded = torch.cat([torch.zeros(1, 4, dtype=torch.int64), ids_1L], 1)  # four places later, seen by nobody
    rank = torch.tensor([[1] * 4 + [0] * 6])
    later = {"ids_BL": padded, "part_BL": torch.zeros_like(padded), "length_B": torch.tensor([10]), "full": False}
    torch.testing.assert_close(encoder({**later, "rank_BL": rank}).hidden_BLD[:, 4:], here, atol=1e-5, rtol=1e-5)
    assert not hasattr(encoder.backbone.embeddings.position_embeddings, "weight")


@pytest.mark.parametrize("spec", [ROTARY, replace(ROTARY, embedding=8), replace(ROTARY, attention="left")])
def test_a_checkpoint_is_a_roformer(spec: Bert, tmp_path: Path) -> None:
    encoder, batch = spec.build(VOCABULARY, 3), batch_of()
    head = MaskedLMHead(encoder)
    torch.nn.init.normal_(head.bias)
    checkpoint.save(encoder, head, tmp_path)
    load: Any = AutoModelForCausalLM if spec.attention == "left" else AutoModelForMaskedLM
    theirs, told = load.from_pretrained(tmp_path, output_loading_info=True)
    assert not told["unexpected_keys"]
    assert theirs.config.model_type == "roformer"
    real_BL = (torch.arange(L)[None] < batch["length_B"][:, None]).long()
    logits = theirs.eval()(input_ids=batch["ids_BL"], attention_mask=real_BL).logits
    ours = head.scores(encoder(batch).hidden_BLD)
    torch.testing.assert_close(ours[real_BL.bool()], logits[real_BL.bool()], atol=1e-5, rtol=1e-5)


def test_transformers_refuses_an_encoder_that_it_has_no_class_for(tmp_path: Path) -> None:
    spec = replace(ROTARY, norm="pre")
    encoder = spec.build(VOCABULARY, 3)
    assert spec.lacks_class == "transformers has no class for a pre-LN encoder with rotary positions"
    assert replace(ROTARY, changes={"position": Rotary(base=100.0)}).lacks_class is not None
    assert ROTARY.lacks_class is None
    checkpoint.save(encoder, None, tmp_path)
    with pytest.raises(ValueError, match="model_type"):
        AutoConfig.from_pretrained(tmp_path)
    again = spec.build(VOCABULARY, 4)
    checkpoint.load(again, tmp_path)
    torch.testing.assert_close(again(batch_of()).hidden_BLD, encoder(batch_of()).hidden_BLD)


def test_a_generator_that_shares_embeddings_rotates_too() -> None:
    network, generator = (
        ROTARY.build_one(VOCABULARY, 0),
        replace(ROTARY, hidden=8, embedding=16).build_one(VOCABULARY, 1),
    )
    generator.share_embeddings(network)
    assert [layer.attention.self.parts.position.width for layer in generator.backbone.encoder.layer] == [4, 4]
    assert generator.table_VD is network.table_VD


def test_learned_positions_are_the_default_and_count_for_nothing() -> None:
    learned = replace(ROTARY, changes={})
    assert kernel(changed=False) == learned.build_one(VOCABULARY, 0).backbone.config._attn_implementation
    encoder = learned.build_one(VOCABULARY, 0)
    assert encoder.backbone.embeddings.position_embeddings.weight.shape == (64, 16)
    own, other = (spec.build(VOCABULARY, 0).state_dict() for spec in (ROTARY, learned))
    assert other.keys() - own.keys() == {"backbone.embeddings.position_embeddings.weight"}
    assert all(torch.equal(own[name], other[name]) for name in own)  # all else equal


def test_costs() -> None:
    more = ROTARY.forward_flops(100, L) - replace(ROTARY, changes={}).forward_flops(100, L)
    assert more == 100 * 2 * (2 * 16 / 2) * 6  # tokens x layers x pairs of queries and keys x 4 products and 2 sums


def test_bad_shapes() -> None:
    with pytest.raises(UserError, match="each head has 3"):
        replace(ROTARY, hidden=6)
    with pytest.raises(UserError, match="not above 1"):
        Rotary(base=1.0)


def test_a_checkpoint_brings_its_own_positions() -> None:
    assert "changes" in Pretrained.ignored_settings
