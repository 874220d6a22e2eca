"""Who sees whom: the reference's pairs, and attention in blocks beside that of all pairs and of `transformers`."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import BigBirdConfig, BigBirdModel, LongformerConfig, LongformerModel, ModernBertConfig

from paribus.core.errors import UserError
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.models import attention_by_parts, last_layer
from paribus.models.attention import CHANGED, PLAIN, attend
from paribus.models.attention_part import AttentionPart, Rows
from paribus.models.bert import Bert
from paribus.models.change import Change, Rotary
from paribus.models.changes import window
from paribus.models.changes.alternating import Alternating
from paribus.models.changes.blocks import Blocks, count_keys, plan_published
from paribus.models.changes.hashed import Hashed
from paribus.models.changes.longformer import Longformer
from paribus.models.changes.prefix import Prefix
from paribus.models.changes.shared_key import SharedKey
from paribus.models.changes.window import Window
from paribus.models.encoder import Encoder

B, L, V = 3, 45, 40
VOCABULARY = Vocabulary(size=V, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4))
SHAPE = Bert(2, 16, 2, 32, positions=64, dropout=0.0, attention_dropout=0.0, initializer_range=0.2)


def batch_of(full: bool = False) -> dict[str, Any]:
    """Rows of several lengths; the second has one segment."""
    return {
        "ids_BL": torch.randint(5, V, (B, L), generator=torch.Generator().manual_seed(1)),
        "length_B": torch.full((B,), L) if full else torch.tensor([L, 29, 41]),
        "part_BL": (torch.arange(L) >= torch.tensor([3, L, 5])[:, None]).long(),
        "full": full,
    }


def changed(changes: dict[str, Change], **shape: Any) -> Bert:
    return replace(SHAPE, changes=changes, **shape)


def see(part: AttentionPart, length: int, first: int = 0) -> Tensor:
    """int [H or 1, L, L]: who (row) sees whom."""
    state = torch.zeros(1, 1, length, 1)
    place_1L = torch.arange(length)[None]
    shown = part.visible_in(Rows(state, state, torch.tensor([first])), place_1L, place_1L)
    assert shown is not None
    return shown[0].int()


def pairs(spec: Bert, length: int) -> float:
    """Those that the costs count in a layer."""
    bare = 2.0 * spec.matmul_parameters() * length
    further = sum(change.forward_flops(spec, length, length) for change in spec.changes.values())
    return (spec.forward_flops(length, length) - bare - further) / (4 * spec.layers * spec.hidden)


def test_the_pairs_of_the_reference() -> None:
    one = see(Longformer(1).attention(SHAPE, 0), 6)[0]
    assert ["".join(map(str, row)) for row in one.tolist()] == [
        "111111", "111000", "111100", "101110", "100111", "100011",
    ]  # fmt: skip
    assert int(one.sum()) == 24
    assert 4096 * Window(256).seen(SHAPE, 4096) == 2_035_456
    assert 4096 * Window(512, counted="total").seen(SHAPE, 4096) == 2_035_456
    assert 4096 * Longformer(256).seen(SHAPE, 4096) == 2_043_134
    assert 4096 * Blocks().seen(SHAPE, 4096) == 2_547_712
    assert 1024 * Blocks().seen(SHAPE, 1024) == 581_632
    keys_HN = (count_keys(Blocks(), 64, 2, 0) > 0).sum(2)
    assert keys_HN[:, [0, 1, 5, 62, 63]].tolist() == [[64, 7, 8, 7, 64]] * 2


@pytest.mark.parametrize("length", [1, 3, 12, 40])
@pytest.mark.parametrize(
    "change",
    [
        Window(3, dilation=3),
        Window(4, counted="total"),
        Longformer(2),
        Longformer(2, tokens=5),
        Prefix(length=4),
        Longformer(2, dilation=2, tokens=3),
        Prefix(),
        Blocks(size=2, random=1),
        Alternating(width=3, every=2),
    ],
)
def test_costs_are_those_of_the_pairs(change: Change, length: int) -> None:
    parts = [change.attention(SHAPE, layer) for layer in range(SHAPE.layers)]
    seen = [length**2 if part is None else float(see(part, length).float().mean(0).sum()) for part in parts]
    if isinstance(change, Blocks) and length % 2:
        return
    assert pairs(changed({"seen": change}), length) == pytest.approx(sum(seen) / len(seen), rel=1e-6)


SEEN: dict[str, dict[str, Change]] = {
    "window": {"seen": Window(3)},
    "window_left": {"seen": Window(3, "left")},
    "window_rotary": {"seen": Window(2), "position": Rotary(), "scores": SharedKey()},
    "global": {"seen": Longformer(2, tokens=2)},
    "global_segment": {"seen": Longformer(2, tokens="segment"), "position": Rotary()},
    "global_shared": {"seen": Longformer(2, own_projections=False), "scores": SharedKey()},
    "blocks": {"seen": Blocks(size=3, random=2), "position": Rotary()},
    "blocks_without_ends": {"seen": Blocks(size=3, random=2, ends=False)},
    "alternating": {"seen": Alternating(3)},
}


@pytest.mark.parametrize("shape", ["post", "pre", "left", "shared", "places"])
@pytest.mark.parametrize("name", SEEN)
@pytest.mark.parametrize("kernel", [PLAIN, CHANGED])
def test_blocks_are_all_pairs(name: str, shape: str, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, dict[str, Any]] = {
        "pre": {"norm": "pre"}, "left": {"attention": "left"}, "shared": {"sharing": "all"},
    }  # fmt: skip
    if (shape == "left" and ("global" in name or "blocks" in name)) or (shape, name) == ("shared", "alternating"):
        pytest.skip("refused")
    spec, batch = changed(SEEN[name], **settings.get(shape, {})), batch_of()
    monkeypatch.setattr(window, "SMALLEST", 2)
    monkeypatch.setattr(last_layer, "MOST", 1.0 if shape == "places" else 0.0)
    calls: list[int] = []
    blocked = attention_by_parts._attend_in_blocks

    def counted(*arguments: Any) -> Tensor:
        calls.append(1)
        return blocked(*arguments)

    monkeypatch.setattr(attention_by_parts, "_attend_in_blocks", counted)
    real_BL = torch.arange(L)[None] < batch["length_B"][:, None]
    if shape == "places":
        batch["read_P"] = torch.tensor([2, 5, 7, L + 3, 2 * L + 1, 2 * L + 30])
    found = []
    for most in (1.0, 0.0):
        monkeypatch.setattr(attention_by_parts, "MOST", most)
        encoder = spec.build_one(VOCABULARY, 0)
        encoder.backbone.config._attn_implementation = kernel
        outputs = encoder(batch)
        assert outputs.hidden_BLD.isfinite().all()
        read_PD = outputs.at(batch["read_P"]) if shape == "places" else outputs.hidden_BLD[real_BL]
        draw = torch.Generator().manual_seed(2)
        (read_PD * torch.randn(read_PD.shape, generator=draw)).sum().backward()
        found.append([read_PD.detach(), *(weight.grad for weight in encoder.parameters() if weight.grad is not None)])
        assert len(calls) == (1 if name == "alternating" else 2), "and none without blocks"
    for own, other in zip(*found, strict=True):
        torch.testing.assert_close(own, other, atol=1e-5 * float(other.abs().max().clamp(min=1)), rtol=1e-5)


def test_blocks_that_count_twice_are_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """In rows of 1024 tokens the published plan draws the last block, which all see anyway."""
    part = Blocks(size=64, draw="published").attention(replace(SHAPE, heads=4), 1)
    assert part.count(1024)[:, 1:-1].max() == 2
    states = torch.randn(3, 1, 4, 1024, 4, generator=torch.Generator().manual_seed(0)).unbind(0)
    found = []
    for most in (0.0, 1.0):
        monkeypatch.setattr(attention_by_parts, "MOST", most)
        found.append(attend_alone(part, *states))
    torch.testing.assert_close(*found, atol=1e-5, rtol=1e-5)


def attend_alone(part: AttentionPart, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    caller = SimpleNamespace(is_causal=False, parts={"one": part})
    return attend(caller, query, key, value, None, scaling=query.shape[-1] ** -0.5)[0]


def test_masks_hold_in_half_precision() -> None:
    """Scores of hidden keys are 57,600 higher: -10000 would not hide them."""
    query = torch.full((1, 1, 4, 4), 120.0, dtype=torch.float16)
    key = query * torch.tensor([-1.0, -1.0, 1.0, 1.0]).half()[:, None]
    value = torch.tensor([1.0, 2.0, 4.0, 8.0]).half()[None, None, :, None].expand(1, 1, 4, 4)
    read = attend_alone(Window(1, "left").attention(SHAPE, 0), query, key, value)
    assert read[0, :2, 0, 0].tolist() == [1.0, 1.5]


def copy_weights(encoder: Encoder, model: Any, moved: int = 0) -> None:
    """Give a model of `transformers` the encoder's weights; its positions begin `moved` later."""
    weights = {name.replace(".of_global", "_global"): weight for name, weight in encoder.backbone.state_dict().items()}
    theirs = model.state_dict()
    positions = "embeddings.position_embeddings.weight"
    own = weights.pop(positions)
    theirs[positions][moved : moved + len(own)] = own
    taken = {name: weight for name, weight in weights.items() if name in theirs}
    assert theirs.keys() - taken.keys() <= {positions, "embeddings.position_ids"}, "all weights are ours"
    model.load_state_dict(theirs | taken)


@pytest.mark.parametrize("tokens", [2, "segment"])
def test_longformer_is_that_of_transformers(tokens: int | str) -> None:
    spec, batch = changed({"seen": Longformer(8, tokens=tokens, counted="total")}), batch_of()
    encoder = spec.build_one(VOCABULARY, 0)
    for name, weight in encoder.named_parameters():
        if "of_global" in name:
            torch.nn.init.normal_(weight, std=0.3, generator=torch.Generator().manual_seed(len(name)))
    config = LongformerConfig(
        vocab_size=V, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, pad_token_id=0,
        max_position_embeddings=65, type_vocab_size=2, attention_window=8, layer_norm_eps=1e-12,
    )  # fmt: skip
    theirs = LongformerModel(config, add_pooling_layer=False).eval()
    copy_weights(encoder, theirs, moved=1)
    first_B = torch.full((B,), 2) if tokens == 2 else torch.tensor([3, 1, 5])
    real_BL = torch.arange(L)[None] < batch["length_B"][:, None]
    expected = theirs(
        input_ids=batch["ids_BL"],
        attention_mask=real_BL.long(),
        global_attention_mask=(torch.arange(L)[None] < first_B[:, None]).long(),
        token_type_ids=batch["part_BL"],
        position_ids=torch.arange(1, L + 1)[None].expand(B, -1),
    ).last_hidden_state
    torch.testing.assert_close(encoder(batch).hidden_BLD[real_BL], expected[real_BL], atol=1e-5, rtol=1e-5)


def test_blocks_are_those_of_bigbird_in_transformers() -> None:
    length = 1024
    spec = changed({"seen": Blocks(draw="published")}, positions=4096)
    encoder = spec.build_one(VOCABULARY, 0)
    config = BigBirdConfig(
        vocab_size=V, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, pad_token_id=0,
        max_position_embeddings=4096, hidden_act="gelu", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        use_bias=True,
    )  # fmt: skip
    theirs = BigBirdModel(config, add_pooling_layer=False).train()  # it draws no random blocks in evaluation
    copy_weights(encoder, theirs)
    real_BL = torch.arange(length)[None] < torch.tensor([length, 900])[:, None]
    batch = {
        "ids_BL": torch.randint(5, V, (2, length), generator=torch.Generator().manual_seed(1)),
        "length_B": real_BL.sum(1),
        "part_BL": torch.zeros(2, length, dtype=torch.int64),
        "full": False,
    }
    state = np.random.get_state()
    expected = theirs(input_ids=batch["ids_BL"], attention_mask=real_BL.long()).last_hidden_state
    np.random.set_state(state)
    torch.testing.assert_close(encoder(batch).hidden_BLD[real_BL], expected[real_BL], atol=1e-5, rtol=1e-5)


def test_the_published_draw_of_1024_tokens_takes_the_last_block() -> None:
    """The reference's share of 7.7%, over many layers."""
    table_HNR = np.concatenate([plan_published(12, 64, 3, layer)[:, :14] for layer in range(40)])
    assert float((table_HNR == 15).mean()) == pytest.approx(0.077, abs=0.003)
    far_HNR = plan_published(2, 64, 3, 0)
    assert far_HNR.shape == (2, 62, 3)
    assert far_HNR.max() <= 15, "all within 1024 tokens"


@pytest.mark.parametrize("blocks", [1, 2, 5, 9, 30])
def test_uniform_blocks_have_no_repeats(blocks: int) -> None:
    count_HNN = count_keys(Blocks(random=3), blocks, 4, 1)
    assert set(count_HNN.unique().tolist()) <= {0, 1}
    assert (count_HNN.sum(2)[:, 2:-2] == min(8, blocks)).all()
    if blocks > 9:
        assert not torch.equal(count_HNN[0], count_HNN[1]), "heads differ"
        assert not torch.equal(count_HNN, count_keys(Blocks(random=3), blocks, 4, 0)), "layers differ"


def test_alternation_is_that_of_modernbert() -> None:
    kinds = ModernBertConfig(num_hidden_layers=8, local_attention=8).layer_types
    spec = replace(SHAPE, layers=8, changes={"seen": Alternating(8, counted="total")})
    parts = [Alternating(8, counted="total").attention(spec, layer) for layer in range(8)]
    assert [part is None for part in parts] == [kind == "full_attention" for kind in kinds]
    assert see(parts[1] or AttentionPart(), 12)[0, 6].tolist() == [0, 0, *[1] * 9, 0]  # distance at most 8 // 2


def test_a_prefix_of_nothing_is_attention_to_the_left() -> None:
    states = []
    for changes, attention in (({"seen": Prefix(length=0)}, "full"), ({}, "left")):
        states.append(changed(changes, attention=attention).build_one(VOCABULARY, 0)(batch_of(True)).hidden_BLD)
    torch.testing.assert_close(*states, atol=1e-5, rtol=1e-5)
    part = Prefix().attention(SHAPE, 0)
    assert see(part, 4, first=2)[0].tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    assert int(see(part, 4).sum()) == 16, "a row of one segment is all prefix"


def test_hashes_are_reformer_s() -> None:
    """A token sees those whose largest product, of all directions and their opposites, is with the same one."""
    part = Hashed(buckets=4, rounds=2).attention(SHAPE, 0)
    state = torch.randn(1, 2, 9, 8, generator=torch.Generator().manual_seed(0))
    place_1L = torch.arange(9)[None]
    shown = part.visible_in(Rows(state, state, torch.zeros(1)), place_1L, place_1L)
    for head, i, j in np.ndindex(2, 9, 9):
        same = []
        for number in range(2):
            direction_EN = part.direction_HERN[head, :, number]
            bucket = [int(torch.cat([x @ direction_EN, -x @ direction_EN]).argmax()) for x in state[0, head, [i, j]]]
            same.append(bucket[0] == bucket[1])
        assert bool(shown[0, head, i, j]) == (any(same) or i == j)
    assert 0.2 < float(shown.float().mean()) < 0.9


def test_copies_of_the_projections_are_where_global_tokens_begin() -> None:
    spec = changed({"seen": Longformer(2)})
    encoder, plain = spec.build_one(VOCABULARY, 0), SHAPE.build_one(VOCABULARY, 0)
    assert encoder.parameter_count() - plain.parameter_count() == 2 * 3 * (16 * 16 + 16)
    shared = replace(spec, changes={"seen": Longformer(2, own_projections=False)}).build_one(VOCABULARY, 0)
    torch.testing.assert_close(encoder(batch_of()).hidden_BLD, shared(batch_of()).hidden_BLD, atol=1e-5, rtol=1e-5)
    assert all(torch.equal(weight, encoder.state_dict()[name]) for name, weight in plain.state_dict().items())
    cost = spec.forward_flops(10, L) - replace(
        spec, changes={"seen": Longformer(2, own_projections=False)}
    ).forward_flops(10, L)
    assert cost == 10 * 2 * 3 * 2 * 16**2


@pytest.mark.parametrize(
    ("changes", "shape", "said"),
    [
        ({"a": Window(2), "b": Blocks()}, {}, "model.changes.a and model.changes.b both set the visibility"),
        ({"a": Window(2, dilation=0)}, {}, "dilation=0, below 1"),
        ({"a": Window(3, counted="total")}, {}, "counted=total halves the width .* width=3"),
        ({"a": Longformer(2, tokens="all")}, {}, "global tokens=all"),
        ({"a": Longformer(2)}, {"attention": "left"}, "hides a side"),
        ({"a": Longformer(2), "b": SharedKey()}, {}, "another change sets the queries"),
        ({"a": Alternating(2, every=1)}, {}, "every=1"),
        ({"a": Alternating(2)}, {"sharing": "all"}, "differ between layers 0 and 1"),
        ({"a": Blocks(size=0)}, {}, "size=0"),
        ({"a": Blocks(window=2)}, {}, "window=2, which has no middle"),
        ({"a": Blocks(draw="new")}, {}, "draw=new"),
        ({"a": Blocks(draw="published", window=5)}, {}, "a plan for window=3"),
        ({"a": Blocks()}, {"attention": "two_way"}, "blocks show both sides"),
        ({"a": Hashed(buckets=7)}, {}, "buckets=7"),
        ({"a": Hashed(rounds=0)}, {}, "rounds=0"),
        ({"a": Prefix(length=-1)}, {}, "length=-1"),
        ({"a": Prefix()}, {"attention": "left"}, "hides a part of the prefix"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Change], shape: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        changed(changes, **shape).build(VOCABULARY, 0)


def test_blocks_divide_the_row() -> None:
    with pytest.raises(
        UserError, match=r"input.length=40 is not divided by the blocks of size=16: set input.length=48"
    ):
        changed({"a": Blocks(size=16)}).check_length(40, "input.length")
    with pytest.raises(UserError, match=r"draw=published has no plan for input.length=128"):
        changed({"a": Blocks(draw="published")}, positions=512).check_length(128, "input.length")


@pytest.mark.parametrize("change", [Longformer(4, tokens=2), Longformer(4, own_projections=False), Blocks(size=5)])
def test_watched_weights_are_those_of_the_values_that_are_read(change: Change) -> None:
    module = changed({"seen": change}).build_one(VOCABULARY, 0).backbone.encoder.layer[0].attention.self
    own = getattr(change, "own_projections", False)
    query, key, value = torch.randn(3, B, 2 * (1 + own), L, 8, generator=torch.Generator().manual_seed(2))
    kept: list[Tensor] = []
    expected, _ = attend(module, query, key, value, None, 0.3)
    module.keep = lambda score, share: kept.append(share)
    read, _ = attend(module, query, key, value, None, 0.3)
    torch.testing.assert_close(read, expected, atol=1e-5, rtol=1e-5)
    expected_BHLE = kept[0] @ value[:, :2]
    if own:  # what the two global tokens read has projections of its own
        expected_BHLE[:, :, :2] = kept[0][:, :, :2] @ value[:, 2:]
    torch.testing.assert_close(read, expected_BHLE.transpose(1, 2))
