"""Positions of an encoder: the reference's numbers, the formulas of the papers, and what `transformers` computes."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode
from transformers import DebertaConfig, T5Config, XLNetConfig
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.deberta.modeling_deberta import DisentangledSelfAttention, build_relative_position
from transformers.models.t5.modeling_t5 import T5Attention
from transformers.models.xlnet.modeling_xlnet import XLNetModel, XLNetRelativeAttention

from paribus.core.errors import UserError
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.models.attention_by_parts import Caller
from paribus.models.attention_part import AttentionPart
from paribus.models.bert import Bert
from paribus.models.change import Positions, Rotary
from paribus.models.changes.alibi import Alibi, find_slopes
from paribus.models.changes.disentangled import Disentangled
from paribus.models.changes.learned_layers import LearnedLayers
from paribus.models.changes.mask_decoder import MaskDecoder
from paribus.models.changes.no_positions import NoPositions
from paribus.models.changes.shaw import Shaw
from paribus.models.changes.sinusoidal import Sinusoidal
from paribus.models.changes.t5 import T5Buckets
from paribus.models.changes.transformer_xl import TransformerXL
from paribus.models.heads.head import name_places
from paribus.models.heads.vocabulary import MaskedLMHead
from paribus.models.positions import make_sinusoids
from paribus.models.rotary import RotaryPart

B, L, V, D, H = 2, 12, 40, 16, 2
PLAIN = Bert(2, D, H, 32, positions=64, dropout=0.0, attention_dropout=0.0, initializer_range=0.2)
VOCABULARY = Vocabulary(size=V, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4))


def changed(position: Positions, **shape: Any) -> Bert:
    return replace(PLAIN, changes={"position": position}, **shape)


def batch_of(rows: int = B, length: int = L) -> dict[str, Any]:
    ids_BL = torch.randint(5, V, (rows, length), generator=torch.Generator().manual_seed(1))
    lengths = torch.full((rows,), length)
    return {"ids_BL": ids_BL, "length_B": lengths, "part_BL": torch.zeros_like(ids_BL), "full": True}


def filled(part: AttentionPart) -> Any:
    draw = torch.Generator().manual_seed(3)
    for weight in part.parameters():
        torch.nn.init.normal_(weight, generator=draw)
    return part


def scores_of(part: AttentionPart, query: Tensor, key: Tensor) -> Tensor:
    """[B, H, L, L]: what goes into the softmax."""
    scale = getattr(part, "scale", query.shape[-1] ** -0.5)
    place_1L, module = torch.arange(key.shape[2])[None], SimpleNamespace(is_causal=False)
    turned = part.turn_scaled(query, key, place_1L, place_1L, scale)
    return Caller(module, [part], 0.0, torch.nn.functional.scaled_dot_product_attention).weigh(
        *turned, None, place_1L, place_1L
    )[0]


def states(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def test_sinusoids_of_the_reference() -> None:
    one = torch.tensor(1)
    for variant, numbers in (
        ("paper", [0.841471, 0.540302, 0.01, 0.99995]),
        ("tensor2tensor", [0.841471, 0.0001, 0.540302, 1.0]),
    ):
        torch.testing.assert_close(make_sinusoids(one, 4, variant), torch.tensor(numbers), atol=1e-6, rtol=0)
    for variant, rates in (
        ("paper", [1, 0.1, 0.01, 0.001]),
        ("transformer_xl", [1, 0.1, 0.01, 0.001]),
        ("tensor2tensor", [1, 0.046416, 0.002154, 0.0001]),
    ):
        waves = make_sinusoids(one, 8, variant)
        sines = waves[::2] if variant == "paper" else waves[:4]
        torch.testing.assert_close(sines.asin()[1:], torch.tensor(rates[1:]), atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("shape", [{}, {"norm": "pre"}, {"embedding": 8}])
def test_sinusoids_enter_as_the_table_does(shape: dict[str, Any]) -> None:
    """An encoder whose learned table holds the sinusoids, counted from the first place, is the same."""
    encoder, learned = (
        spec.build_one(VOCABULARY, 0) for spec in (changed(Sinusoidal(), **shape), replace(PLAIN, **shape))
    )
    table = learned.backbone.embeddings.position_embeddings.weight
    with torch.no_grad():
        table[learned.first_position :] = 0.2 * make_sinusoids(torch.arange(64), table.shape[1], "paper")
    assert torch.equal(encoder(batch_of()).hidden_BLD, learned(batch_of()).hidden_BLD)


def test_positions_of_every_layer_are_added_to_what_it_reads() -> None:
    for position, added in (
        (LearnedLayers(), None),
        (Sinusoidal(place="layers"), make_sinusoids(torch.arange(L), D, "paper")),
    ):
        encoder, plain = (changed(each).build_one(VOCABULARY, 0) for each in (position, NoPositions()))
        state_BLD = plain.backbone.embeddings(batch_of()["ids_BL"])
        for layer, own in zip(plain.backbone.encoder.layer, encoder.backbone.encoder.layer, strict=True):
            own_LD = own.position_table.weight[:L] if added is None else added
            state_BLD = layer(state_BLD + own_LD)
        torch.testing.assert_close(encoder(batch_of()).hidden_BLD, state_BLD, atol=1e-5, rtol=1e-5)


def test_without_positions_a_row_is_a_bag_unless_a_side_is_hidden() -> None:
    order = torch.tensor([0, *range(1, L)][::-1])
    for attention, bag in (("full", True), ("left", False)):
        encoder, batch = changed(NoPositions(), attention=attention).build_one(VOCABULARY, 0), batch_of()
        turned = {**batch, "ids_BL": batch["ids_BL"][:, order]}
        own, other = encoder(batch).hidden_BLD, encoder(turned).hidden_BLD[:, order]
        assert torch.allclose(own, other, atol=1e-5) == bag


def test_shaw_s_vectors_are_those_of_clipped_distances() -> None:
    """Equations 3 and 4, and the reference's indices for k = 2."""
    part, place_1L = filled(Shaw(most=2).attention(PLAIN, 0)), torch.arange(5)[None]
    assert part.clip(place_1L, place_1L)[0, [0, 4]].tolist() == [[2, 3, 4, 4, 4], [0, 0, 0, 1, 2]]
    query, key, value = states(3, B, H, 5, 8).unbind(0)
    share = scores_of(part, query, key).softmax(-1)
    read = share @ value + part.read(share, place_1L, place_1L)
    for i in range(5):
        distance = (place_1L[0] - i).clamp(-2, 2) + 2
        score_BHK = torch.einsum("bhe,bhke->bhk", query[:, :, i], key + part.of_key_RE[distance]) * 8**-0.5
        expected = torch.einsum("bhk,bhke->bhe", score_BHK.softmax(-1), value + part.of_value_RE[distance])
        torch.testing.assert_close(read[:, :, i], expected, atol=1e-5, rtol=1e-5)
    alone = Shaw(most=2, values=False).attention(PLAIN, 0)
    assert not alone.needs_shares, "keys alone leave fused attention"
    assert [name for name, _ in alone.named_parameters()] == ["of_key_RE"]


def test_buckets_are_t5_s() -> None:
    distances = torch.tensor([-128, -64, -16, -8, -7, 0, 1, 7, 8, 64, 128])
    for attention, numbers in (
        ("full", [15, 14, 10, 8, 7, 0, 17, 23, 24, 30, 31]),
        ("left", [31, 26, 16, 8, 7, 0, 0, 0, 0, 0, 0]),
    ):
        part: Any = T5Buckets().attention(replace(PLAIN, attention=attention), 0)
        assert part.find_buckets(distances).tolist() == numbers
        every = torch.arange(-300, 300)
        theirs = T5Attention._relative_position_bucket(every, attention == "full", 32, 128)
        assert torch.equal(part.find_buckets(every), theirs)
        mirrored: Any = T5Buckets().attention(replace(PLAIN, attention="right"), 0)
        assert attention == "full" or torch.equal(mirrored.find_buckets(-every), theirs)


def test_scores_of_buckets_are_t5_s() -> None:
    theirs = T5Attention(T5Config(d_model=D, num_heads=H, d_kv=8), has_relative_attention_bias=True)
    part = filled(T5Buckets().attention(PLAIN, 0))
    theirs.relative_attention_bias.weight.data = part.score_RH.data
    place_1L = torch.arange(40)[None]
    own = part.score(states(1, H, 40, 8), states(1, H, 40, 8), place_1L, place_1L)
    torch.testing.assert_close(own, theirs.compute_bias(40, 40))
    encoder = changed(T5Buckets()).build_one(VOCABULARY, 0)
    assert sum("score_RH" in name for name, _ in encoder.named_parameters()) == 1, "one table for all layers"


@pytest.mark.parametrize("heads", [1, 2, 4, 6, 8, 12, 16])
def test_slopes_are_those_of_the_paper(heads: int) -> None:
    """As `transformers` has them for Bloom; the paper's 2^-1 ... 2^-8 for eight heads."""
    theirs = build_alibi_tensor(torch.ones(1, 5), heads, torch.float32)  # slope x place of the key
    torch.testing.assert_close(torch.tensor(find_slopes(heads)), theirs[:, 0, 1])
    assert heads != 8 or find_slopes(8) == [2.0**-power for power in range(1, 9)]


def test_scores_fall_alike_on_both_sides() -> None:
    part, place_1L = Alibi().attention(replace(PLAIN, heads=8), 0), torch.arange(4)[None]
    score: Any = part.score(states(1, 8, 4, 2), states(1, 8, 4, 2), place_1L, place_1L)
    assert score[0, 0].tolist() == [[0, -0.5, -1, -1.5], [-0.5, 0, -0.5, -1], [-1, -0.5, 0, -0.5], [-1.5, -1, -0.5, 0]]


def test_relative_sinusoids_are_those_of_xlnet() -> None:
    """XLNet (`transformers` 5 has no Transformer-XL) with its segments left out, both sides seen."""
    config = XLNetConfig(vocab_size=V, d_model=D, n_layer=1, n_head=H, d_inner=32, dropout=0.0)
    theirs, part = XLNetRelativeAttention(config), filled(TransformerXL().attention(PLAIN, 0))
    query, key = states(2, 1, H, 5, 8).unbind(0)
    for own, other in ((part.content_HE, theirs.r_w_bias), (part.distance_HE, theirs.r_r_bias)):
        other.data = own.data
    distance_RD = XLNetModel(config).relative_positional_encoding(5, 5)[:, 0]
    theirs_RHE = part.key(distance_RD).unflatten(-1, (H, -1))[:, None]
    value = torch.eye(5)[:, None, None].expand(5, 1, H, 5)  # so that what is read are the weights
    read = theirs.rel_attn_core(query.permute(2, 0, 1, 3), key.permute(2, 0, 1, 3), value, theirs_RHE)
    torch.testing.assert_close(
        scores_of(part, query, key).softmax(-1)[0], read[:, 0].transpose(0, 1), atol=1e-5, rtol=1e-5
    )


def test_layers_share_biases_and_tables() -> None:
    for position, shared, single in ((TransformerXL(), "content_HE", "key"), (Disentangled(), "table_RD", "query")):
        encoder = changed(position).build_one(VOCABULARY, 0)
        first, second = (layer.attention.self.parts["position"] for layer in encoder.backbone.encoder.layer)
        assert getattr(first, shared) is getattr(second, shared)
        assert not torch.equal(getattr(first, single).weight, getattr(second, single).weight)


@pytest.mark.parametrize("terms", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("length", [5, 12, 30])
def test_disentangled_attention_is_deberta_s(terms: tuple[bool, bool], length: int) -> None:
    """The weights of the values, for rows within the table and beyond it."""
    kinds = [kind for kind, used in zip(("c2p", "p2c"), terms, strict=True) if used]
    config = DebertaConfig(
        hidden_size=D, num_attention_heads=H, relative_attention=True, max_relative_positions=8, pos_att_type=kinds
    )
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
    spec = changed(Disentangled(*terms, most=8))
    theirs, part = DisentangledSelfAttention(config), filled(spec.changes["position"].attention(spec, 0))
    if part.key is not None:
        theirs.pos_proj.weight.data = part.key.weight.data
    if part.query is not None:
        theirs.pos_q_proj.load_state_dict(part.query.state_dict())
    state_BLD = states(B, length, D)
    query, key, _ = theirs.transpose_for_scores(theirs.in_proj(state_BLD)).chunk(3, dim=-1)
    seen = torch.ones(B, 1, length, length)
    distances = build_relative_position(query, key)
    _, share = theirs(state_BLD, seen, True, relative_pos=distances, rel_embeddings=part.table_RD)
    torch.testing.assert_close(scores_of(part, query, key).softmax(-1), share, atol=1e-5, rtol=1e-5)


def test_a_share_of_features_is_rotated() -> None:
    query, key, place_1L = states(B, H, L, 8), states(B, H, L, 8) + 1, torch.arange(L)[None]
    some = RotaryPart(4, 10000.0).turn_scaled(query, key, place_1L, place_1L, 0.5)
    first = RotaryPart(4, 10000.0).turn_scaled(query[..., :4], key[..., :4], place_1L, place_1L, 0.5)
    rest = query[..., 4:] * 0.5, key[..., 4:]
    for whole, turned, kept in zip(some, first, rest, strict=True):
        assert torch.equal(whole, torch.cat([turned, kept], -1))
    assert (
        changed(Rotary(share=0.5))
        .build_one(VOCABULARY, 0)
        .backbone.encoder.layer[0]
        .attention.self.parts.position.width
        == 4
    )
    assert changed(Rotary(share=0.5)).lacks_class == "RoFormer in transformers rotates all features"


@pytest.mark.parametrize("attention", ["full", "left"])
@pytest.mark.parametrize(
    "position",
    [NoPositions(), Alibi(), T5Buckets(), Shaw(), Shaw(values=False), TransformerXL(), Disentangled(most=40)],
)
def test_costs_are_the_products_that_are_computed(position: Positions, attention: str) -> None:
    rows, length = 16, 48
    spec = Bert(2, 64, 4, 128, dropout=0.0, attention_dropout=0.0, changes={"position": position}, attention=attention)
    encoder, batch = spec.build_one(VOCABULARY, 0), batch_of(rows, length)
    with FlopCounterMode(display=False) as counter:
        encoder(batch)
    counted = counter.get_total_flops()
    dense = (
        4.0 * spec.layers * rows * length * length * 64
    )  # scores and values of all pairs, of which costs may count half
    seen = length if attention == "full" else (length + 1) / 2
    counted -= dense * (1 - seen / length)
    assert spec.forward_flops(rows * length, length) == pytest.approx(counted, rel=0.06)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Rotary(share=0.0), "share=0.0 is not above 0"),
        (lambda: changed(Rotary(share=0.4)), "share=0.4 rotates 3.2 of the 8 features"),
        (lambda: Sinusoidal(variant="bert"), "variant=bert is unknown"),
        (lambda: Sinusoidal(place="output"), "place=output is unknown"),
        (lambda: Sinusoidal(scale=0.0), "scale=0.0 is not above 0"),
        (lambda: changed(Sinusoidal(), embedding=7), "the width is 7"),
        (lambda: changed(TransformerXL(), hidden=15, heads=3), "the width is 15"),
        (lambda: Shaw(most=0), "most=0 is below 1"),
        (lambda: Shaw(keys=False, values=False), "neither keys nor values"),
        (lambda: T5Buckets(buckets=6), "buckets=6 is not a multiple of 4"),
        (lambda: T5Buckets(most=16), "most=16 leaves no logarithmic buckets"),
        (lambda: Disentangled(False, False), "neither content_to_position nor position_to_content"),
        (lambda: Disentangled(most=0), "most=0 is below 1"),
        (
            lambda: replace(PLAIN, changes={"a": Alibi(), "b": Shaw()}),
            "model.changes.a and model.changes.b both set the pos",
        ),
    ],
)
def test_bad_settings(make: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        make()


def test_the_reference_s_slopes_need_no_power_of_two() -> None:
    """Twelve heads: those of eight, then every second one of sixteen."""
    assert find_slopes(12)[8:] == [2 ** (-0.5 * power) for power in (1, 3, 5, 7)]
    assert math.isclose(find_slopes(12)[7], 2**-8)


@pytest.mark.parametrize("shape", [{}, {"norm": "pre"}, {"sharing": "all"}])
def test_a_mask_decoder_applies_the_last_layer_twice(shape: dict[str, Any]) -> None:
    """As `emd_context_layer` of the authors' code: queries of a pass are what the pass before gave, keys stay."""
    spec = replace(PLAIN, changes={"position": NoPositions(), "decoder": MaskDecoder()}, **shape)
    encoder, batch = spec.build_one(VOCABULARY, 0), {**batch_of(), "slot_P": torch.tensor([3, L + 5])}
    plain = replace(spec, changes={"position": NoPositions()}).build_one(VOCABULARY, 0)
    assert torch.equal(encoder(batch).hidden_BLD, plain(batch).hidden_BLD), "tasks read the plain layer"

    layer, before = plain.backbone.encoder.layer[-1], []
    layer.register_forward_pre_hook(lambda _, given: before.append(given[0]))
    plain(batch)
    norm = layer.attention.LayerNorm if spec.norm == "pre" else torch.nn.Identity()
    attention, state_BLD = layer.attention.self, before[0]
    projections = attention.query, attention.key, attention.value
    asking_BLD = state_BLD + encoder.backbone.encoder.layer[-1].decoder_table.weight[:L]
    for _ in range(2):
        heads = (
            project(norm(states)).unflatten(-1, (H, -1)).transpose(1, 2)
            for project, states in zip(projections, (asking_BLD, state_BLD, state_BLD), strict=True)
        )
        read = torch.nn.functional.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
        asking_BLD = layer.feed_forward_chunk(layer.attention.output(read, asking_BLD))
    expected = asking_BLD if spec.norm == "post" else plain.backbone.LayerNorm(asking_BLD)
    outputs = encoder(name_places([MaskedLMHead(encoder)], batch))
    torch.testing.assert_close(
        outputs.at(batch["slot_P"]), expected.flatten(0, 1)[batch["slot_P"]], atol=1e-5, rtol=1e-5
    )
    assert not torch.allclose(expected, plain(batch).hidden_BLD, atol=1e-3)
