"""Changes of an encoder: exact at the places that heads read, alone and together, in checkpoints and in costs."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode
from toys_changes import Alternating, Buckets, MeanOfRow, NormedHeads, Relative, Squares
from transformers import AutoConfig, AutoModelForMaskedLM
from transformers.models.bert.modeling_bert import BertLayer
from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

from paribus.core.build import build
from paribus.core.config import compose, plain
from paribus.core.errors import UserError
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.finetuning.lora import Lora
from paribus.models import change as change_module
from paribus.models import changes as package
from paribus.models import checkpoint, last_layer
from paribus.models.attention import CHANGED, PLAIN, attend
from paribus.models.attention_part import AttentionPart
from paribus.models.bert import Bert
from paribus.models.change import Change, Positions, Rotary
from paribus.models.changes.blocks import Blocks
from paribus.models.changes.counted_bias import CountedBias
from paribus.models.changes.head_size import HeadSize
from paribus.models.changes.longformer import Longformer
from paribus.models.changes.mup import Mup
from paribus.models.changes.qk_norm import QKNorm, QKNormPart
from paribus.models.changes.scaled_embeddings import ScaledEmbeddings
from paribus.models.changes.shared_key import SharedKey, SharedKeyPart
from paribus.models.changes.sigmoid import SigmoidPart
from paribus.models.changes.unscaled import Unscaled
from paribus.models.changes.untied import Untied
from paribus.models.changes.window import Window
from paribus.models.encoder import Encoder
from paribus.models.heads.head import name_places
from paribus.models.heads.rows import PairHead
from paribus.models.heads.vocabulary import MaskedLMHead, start_head
from paribus.training.outlook import name_positions

B, L, V = 3, 12, 40
COUNTED: Any = SimpleNamespace(count_V=np.arange(V))
VOCABULARY = Vocabulary(size=V, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4), entries=COUNTED)
PLAIN_BERT = Bert(3, 16, 2, 48, positions=64, dropout=0.0, attention_dropout=0.0, initializer_range=0.2)
SHAPES: dict[str, dict[str, Any]] = {
    "post": {},
    "pre": {"norm": "pre"},
    "shared": {"sharing": "all", "embedding": 8},
    "right": {"attention": "right"},
}
TOYS: dict[str, Change] = {
    "relative": Relative(),
    "neighbors": Alternating(),
    "toy_buckets": Buckets(),
    "squares": Squares(),
    "normed": NormedHeads(),
}


def batch_of(full: bool = False) -> dict[str, Any]:
    """Rows of several lengths, and places of them."""
    return {
        "ids_BL": torch.randint(5, V, (B, L), generator=torch.Generator().manual_seed(1)),
        "length_B": torch.full((B,), L) if full else torch.tensor([L, 9, 11]),
        "part_BL": (torch.arange(L) >= torch.tensor([3, L, 5])[:, None]).long(),
        "slot_P": torch.tensor([2, 5, L + 3, 2 * L + 1]),
        "full": full,
    }


def find_shipped() -> dict[str, Change]:
    """Every change in the package, at its default settings."""
    found = pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
    modules = [change_module, *(import_module(each.name) for each in found)]
    kinds = [kind for module in modules for kind in vars(module).values() if isinstance(kind, type)]
    return {
        kind.__name__.lower(): kind() for kind in kinds if issubclass(kind, Change) and kind not in (Change, Positions)
    }


def together(changes: dict[str, Change]) -> dict[str, Change]:
    """Those that can be combined: of several that set the same, rotary positions, the window or the first."""
    kept: dict[str, Change] = {}
    for name, change in sorted(changes.items(), key=lambda named: named[0] not in ("rotary", "window")):
        if not any(change.sets & other.sets for other in kept.values()):
            kept[name] = change
    return kept


SHIPPED = find_shipped() | {"mup": Mup(4, 1)}  # of a base that is narrower than this encoder
EXACT = {name: each for name, each in SHIPPED.items() if each.exact_at_places}
SETS: dict[str, dict[str, Change]] = {
    **{name: {name: each} for name, each in (EXACT | TOYS).items()},
    "narrow_window": {"local": Window(2)},
    "dominant_diagonal": {"scores": SharedKey(normalize=False, diagonal=True)},
    "small_blocks": {"seen": Blocks(size=2, random=1)},
    "gaps": {"seen": Longformer(1, dilation=2, tokens="segment")},
    "all_shipped": together(EXACT | {"window": Window(3)}),
    "all": together({key: each for key, each in (EXACT | TOYS).items() if key not in ("neighbors", "squares")}),
}


def changed(changes: dict[str, Change], **shape: Any) -> Bert:
    return replace(PLAIN_BERT, changes=changes, **shape)


def fitting(changes: dict[str, Change], **shape: Any) -> dict[str, Change]:
    """Those of the changes that the shape does not refuse; skips the test if there are none."""
    kept: dict[str, Change] = {}
    for name, change in changes.items():
        if name in ("neighbors", "alternating") and shape.get("sharing") == "all":
            continue  # its layers differ, so that they cannot share attention
        with suppress(UserError):
            change.check(replace(PLAIN_BERT, **shape))
            kept[name] = change
    return kept or pytest.skip("the change is refused for this shape")


def states_and_gradients(spec: Bert, most: float, full: bool, monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    monkeypatch.setattr(last_layer, "MOST", most)
    encoder, batch = spec.build(VOCABULARY, 0), batch_of(full=full)
    outputs = encoder(name_places([MaskedLMHead(encoder)], batch))
    assert (outputs.table_N is not None) == (most == 1.0)
    state_PD = outputs.at(batch["slot_P"])
    draw = torch.Generator().manual_seed(2)
    (state_PD * torch.randn(state_PD.shape, generator=draw)).sum().backward()
    return [state_PD.detach(), *(weight.grad for weight in encoder.parameters() if weight.grad is not None)]


def test_the_package_has_these_changes() -> None:
    assert {"rotary", "sharedkey", "window"} <= SHIPPED.keys()
    assert SHIPPED.keys() - EXACT.keys() == {"batchnorm"}


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", SETS)
def test_places_that_are_read_are_those_of_the_whole_layer(
    name: str, shape: str, full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = changed(fitting(SETS[name], **SHAPES[shape]), **SHAPES[shape])
    few, whole = (states_and_gradients(spec, most, full, monkeypatch) for most in (1.0, 0.0))
    assert len(few) == len(whole)
    for own, other in zip(few, whole, strict=True):
        close = 3e-6 * float(other.abs().max().clamp(min=1))
        torch.testing.assert_close(own, other, atol=close, rtol=1e-6)


def test_a_change_that_says_nothing_of_places_has_its_whole_layer() -> None:
    batch = batch_of()
    for spec in (changed({"mean": MeanOfRow()}), changed({"position": Rotary(), "mean": MeanOfRow()})):
        encoder = spec.build_one(VOCABULARY, 0)
        outputs, place_P = encoder(name_places([PairHead(16)], batch)), torch.arange(B) * L
        assert outputs.hidden_BLD.shape == (B, L, 16)
        assert torch.equal(outputs.at(place_P), encoder(batch).hidden_BLD[:, 0])


def test_a_layer_of_another_class_is_computed_whole() -> None:
    @dataclass(frozen=True)
    class OwnLayer(Change):
        exact_at_places: ClassVar[bool] = True

        def alter(self, encoder: Encoder) -> None:
            encoder.backbone.encoder.layer[-1].__class__ = type("Own", (BertLayer,), {})

    encoder = changed({"layer": OwnLayer()}).build_one(VOCABULARY, 0)
    outputs, place_P = encoder(name_places([PairHead(16)], batch_of())), torch.arange(B) * L
    assert torch.equal(outputs.at(place_P), encoder(batch_of()).hidden_BLD[:, 0])


@pytest.mark.parametrize("shape", [*SHAPES, "left"])
@pytest.mark.parametrize("name", [name for name in SETS if name != "neighbors"])
def test_the_form_for_gpus_is_the_same(name: str, shape: str) -> None:
    settings = SHAPES.get(shape, {"attention": shape})
    spec, batch = changed(fitting(SETS[name], **settings), **settings), batch_of()
    encoder = spec.build_one(VOCABULARY, 0)
    real_BL = torch.arange(L)[None] < batch["length_B"][:, None]
    found = []
    for kernel in (PLAIN, CHANGED):
        encoder.backbone.config._attn_implementation = kernel
        hidden_BLD = encoder(batch).hidden_BLD
        encoder.zero_grad()
        hidden_BLD[real_BL].pow(2).sum().backward()
        assert hidden_BLD.isfinite().all(), "padding too"
        found.append(
            [hidden_BLD.detach()[real_BL], *(w.grad.clone() for w in encoder.parameters() if w.grad is not None)]
        )
    for own, other in zip(*found, strict=True):
        torch.testing.assert_close(own, other, atol=1e-4, rtol=1e-4)


def test_a_left_to_right_encoder_sees_nothing_to_the_right_of_a_window() -> None:
    encoder = changed({"window": Window(4), "buckets": Buckets()}, attention="left").build_one(VOCABULARY, 0)
    batch = batch_of(full=True)
    other = {**batch, "ids_BL": batch["ids_BL"].clone()}
    other["ids_BL"][:, 7:] = 6
    assert torch.equal(encoder(batch).hidden_BLD[:, :7], encoder(other).hidden_BLD[:, :7])


def test_padding_moves_no_state_under_all_changes() -> None:
    encoder, batch = changed(SETS["all"]).build_one(VOCABULARY, 0), batch_of()
    other = {**batch, "ids_BL": batch["ids_BL"].clone()}
    other["ids_BL"][1, 9:] = 7
    torch.testing.assert_close(encoder(batch).hidden_BLD[1, :9], encoder(other).hidden_BLD[1, :9])


def test_relative_vectors_are_shaw_s() -> None:
    """Against equations 3 and 4 of arXiv 1803.02155, and the reference's clipped distances."""
    part = Relative(2).attention(PLAIN_BERT, 0)
    torch.nn.init.normal_(part.of_key_RE)
    torch.nn.init.normal_(part.of_value_RE)
    place_1L = torch.arange(5)[None]
    assert part.clip(place_1L, place_1L)[0, [0, 4]].tolist() == [[2, 3, 4, 4, 4], [0, 0, 0, 1, 2]]
    query, key, value = torch.randn(3, 2, 2, 5, 8).unbind(0)
    caller = SimpleNamespace(is_causal=False, parts={"relative": part})
    read, _ = attend(caller, query, key, value, None, scaling=8**-0.5)
    for i in range(5):
        distance = (place_1L[0] - i).clamp(-2, 2) + 2
        score_BHK = torch.einsum("bhe,bhke->bhk", query[:, :, i], key + part.of_key_RE[distance]) * 8**-0.5
        expected = torch.einsum("bhk,bhke->bhe", score_BHK.softmax(-1), value + part.of_value_RE[distance])
        torch.testing.assert_close(read[:, i], expected, atol=1e-5, rtol=1e-5)


def test_a_token_with_one_projection_sees_itself_above_all() -> None:
    """The reference's shares of the diagonal at width 64 with 16 tokens, the mean of many draws."""
    draw, place_1L = torch.Generator().manual_seed(0), torch.arange(16)[None]
    state = torch.randn(200, 1, 16, 64, generator=draw)
    key, other = (torch.einsum("nhle,nef->nhlf", state, torch.randn(200, 64, 64, generator=draw) / 8) for _ in range(2))

    def diagonal(part: SharedKeyPart) -> Tensor:
        query, keys = part.turn_scaled(other, key, place_1L, place_1L, 1 / 8)
        added = part.score(query, keys, place_1L, place_1L)
        score = query @ keys.transpose(2, 3) + (0 if added is None else added)
        return score.softmax(-1).diagonal(dim1=2, dim2=3).mean()

    assert float(diagonal(SharedKeyPart(normalize=False, diagonal=True))) == pytest.approx(0.96, abs=0.01)
    assert float(diagonal(SharedKeyPart(normalize=False, diagonal=False))) == 0.0
    separate = (other @ key.transpose(2, 3) / 8).softmax(-1).diagonal(dim1=2, dim2=3).mean()
    assert float(separate) == pytest.approx(0.071, abs=0.01)
    _, keys = SharedKeyPart(normalize=True, diagonal=False).turn(other, key, place_1L, place_1L)
    torch.testing.assert_close(keys.norm(dim=-1), torch.full((200, 1, 16), 8.0), atol=1e-3, rtol=0)


def test_a_token_alone_sees_itself() -> None:
    encoder = changed({"scores": SharedKey()}).build_one(VOCABULARY, 0)
    batch = {**batch_of(), "length_B": torch.tensor([L, 1, L])}
    alone = {name: value[1:2, :1] for name, value in batch.items() if name in ("ids_BL", "part_BL")}
    states = encoder({**alone, "length_B": torch.tensor([1]), "full": True}).hidden_BLD
    torch.testing.assert_close(encoder(batch).hidden_BLD[1, 0], states[0, 0])


def test_one_projection_less() -> None:
    own, plain = (changed(changes).build_one(VOCABULARY, 0) for changes in ({"scores": SharedKey()}, {}))
    assert plain.parameter_count() - own.parameter_count() == 3 * (16 * 16 + 16)
    assert all(torch.equal(weight, plain.state_dict()[name]) for name, weight in own.state_dict().items())
    cost = changed({"scores": SharedKey()}).forward_flops(100, L) - PLAIN_BERT.forward_flops(100, L)
    assert cost == -100 * 3 * 2 * 16**2


def test_heads_have_widths_of_their_own() -> None:
    """Table 3 B of arXiv 1706.03762 in the reference's numbers: keys of 16 save 7,077,888 weights; here in 6 layers."""
    base = Bert(6, 512, 8, 2048)
    narrow = replace(base, changes={"heads": HeadSize(16, None)})
    assert base.matmul_parameters() - narrow.matmul_parameters() == 7_077_888 / 18 * 6
    batch, spec = batch_of(full=True), changed({"heads": HeadSize(4, 12), "position": Rotary()})
    encoder, plain = spec.build_one(VOCABULARY, 0), PLAIN_BERT.build_one(VOCABULARY, 0)
    shapes = {name: tuple(weight.shape) for name, weight in encoder.backbone.encoder.layer[1].named_parameters()}
    assert shapes["attention.self.query.weight"] == shapes["attention.self.key.weight"] == (8, 16)
    assert shapes["attention.self.value.weight"] == (24, 16)
    assert shapes["attention.output.dense.weight"] == (16, 24)
    with FlopCounterMode(display=False) as counted:
        encoder(batch)
    assert spec.forward_flops(B * L, L) == pytest.approx(counted.get_total_flops(), rel=0.05)
    same = changed({"heads": HeadSize(8, 8)}).build_one(VOCABULARY, 0)
    assert torch.equal(same(batch).hidden_BLD, plain(batch).hidden_BLD)


def test_folded_scores_begin_as_scaled_ones() -> None:
    batch = batch_of()
    plain, folded, unscaled = (
        changed(changes).build_one(VOCABULARY, 0)(batch).hidden_BLD
        for changes in ({}, {"scale": Unscaled(fold=True)}, {"scale": Unscaled()})
    )
    torch.testing.assert_close(folded, plain, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(unscaled, plain, atol=1e-2)


def test_norms_of_queries_and_keys_are_those_of_qwen3() -> None:
    part = changed({"scores": QKNorm()}).build_one(VOCABULARY, 0).backbone.encoder.layer[0].attention.self.parts.scores
    theirs = Qwen3RMSNorm(8, eps=1e-6)
    with torch.no_grad():
        part.key_norm.weight.copy_(torch.arange(1.0, 9.0))
        theirs.weight.copy_(torch.arange(1.0, 9.0))
    query, key, place_1L = torch.randn(B, 2, L, 8), torch.randn(B, 2, L, 8), torch.arange(L)[None]
    torch.testing.assert_close(part.turn(query, key, place_1L, place_1L)[1], theirs(key), atol=1e-5, rtol=1e-5)
    layer = QKNormPart(8, QKNorm("layer", gain=False)).turn(query, key, place_1L, place_1L)[0]
    torch.testing.assert_close(layer.mean(-1), torch.zeros(B, 2, L), atol=1e-5, rtol=0)
    torch.testing.assert_close(layer.var(-1, correction=0), torch.ones(B, 2, L), atol=1e-3, rtol=0)


def test_positions_turn_queries_before_or_after_their_norm() -> None:
    batch = batch_of()
    before, after = (changed({"p": Rotary(), "a": QKNorm(before_positions=way)}) for way in (True, False))
    orders = [
        list(spec.build_one(VOCABULARY, 0).backbone.encoder.layer[0].attention.self.parts) for spec in (before, after)
    ]
    assert orders == [["a", "p"], ["p", "a"]]
    states = [spec.build_one(VOCABULARY, 0)(batch).hidden_BLD for spec in (before, after)]
    torch.testing.assert_close(*states)  # a rotation keeps lengths, and scales begin at 1


def test_a_sigmoid_weighs_each_key_by_itself() -> None:
    """sigmoid(q k / sqrt(d) - log n) v, the sum over what a query sees (arXiv 2409.04431, section 2)."""
    query, key, value = torch.randn(3, 2, 2, 5, 8).unbind(0)
    caller = SimpleNamespace(is_causal=False, parts={"scores": SigmoidPart(None)})
    seen = torch.tensor([True, True, True, False, False]).expand(2, 1, 5, 5)
    read, _ = attend(caller, query, key, value, seen, scaling=8**-0.5)
    share = torch.sigmoid(query @ key[:, :, :3].transpose(2, 3) * 8**-0.5 - torch.tensor(3.0).log())
    torch.testing.assert_close(read, (share @ value[:, :, :3]).transpose(1, 2), atol=1e-5, rtol=1e-5)
    share = SigmoidPart(-2.0).share(torch.zeros(1, 1, 1, 2))
    assert share.flatten().tolist() == pytest.approx([0.1192, 0.1192], abs=1e-4)


def test_an_untied_head_has_a_table_of_its_own() -> None:
    batch, spec = batch_of(), changed({"embeddings": Untied()}, embedding=8)
    encoder, plain = spec.build_one(VOCABULARY, 0), changed({}, embedding=8).build_one(VOCABULARY, 0)
    heads = [start_head(MaskedLMHead(each), each, 0, None) for each in (encoder, plain)]
    assert heads[0].own_table_VD.shape == plain.table_VD.shape == (V, 8)
    heads[0].logits(encoder(batch), batch).square().sum().backward()
    unread_V = ~torch.isin(torch.arange(V), batch["ids_BL"])
    assert unread_V.any()
    assert not encoder.table_VD.grad[unread_V].any()
    assert heads[0].own_table_VD.grad[unread_V].all(-1).all()
    own, tied = (sum(weight.numel() for weight in head.parameters()) for head in heads)
    assert own - tied == V * 8
    assert encoder.parameter_count() == plain.parameter_count()


@pytest.mark.parametrize("shape", [{}, {"norm": "pre"}, {"embedding": 8}, {"sharing": "all", "embedding": 8}])
@pytest.mark.parametrize("name", ["untied", "countedbias"])
def test_transformers_loads_an_output_table_and_bias(name: str, shape: dict[str, Any], tmp_path: Path) -> None:
    spec, batch = changed({"embeddings": SHIPPED[name]}, **shape), batch_of(full=True)
    encoder = spec.build_one(VOCABULARY, 0).eval()
    head = start_head(MaskedLMHead(encoder), encoder, 0, None)
    checkpoint.save(encoder, head, tmp_path)
    assert spec.lacks_class is None or (shape.get("norm") == "pre" and "embedding" in shape)
    theirs = AutoModelForMaskedLM.from_pretrained(tmp_path).eval()
    assert theirs.config.tie_word_embeddings == (name != "untied")
    with torch.no_grad():
        logits_PV = theirs(batch["ids_BL"], token_type_ids=batch["part_BL"]).logits.flatten(0, 1)[batch["slot_P"]]
        torch.testing.assert_close(head.logits(encoder(batch), batch), logits_PV, atol=1e-5, rtol=1e-5)


def test_a_counted_bias_begins_with_the_unigram_model() -> None:
    encoder = changed({"embeddings": CountedBias()}).build_one(VOCABULARY, 0)
    head = start_head(MaskedLMHead(encoder), encoder, 0, None)
    share_V = (np.arange(V) + 1) / (np.arange(V) + 1).sum()
    np.testing.assert_allclose(head.bias.detach().softmax(0), share_V, rtol=1e-5)
    uncounted = changed({"embeddings": CountedBias()}).build_one(replace(VOCABULARY, entries=None), 0)
    with pytest.raises(UserError, match="no spellings and counts"):
        MaskedLMHead(uncounted)


def test_scaled_embeddings_are_read_times_the_root_of_their_width() -> None:
    encoder, plain = (changed(each).build_one(VOCABULARY, 0) for each in ({"words": ScaledEmbeddings()}, {}))
    ids = batch_of()["ids_BL"]
    words, theirs = (each.backbone.embeddings.word_embeddings(ids) for each in (encoder, plain))
    assert torch.equal(words, 4.0 * theirs)
    assert torch.equal(encoder.table_VD, plain.table_VD)


@pytest.mark.parametrize("length", [1, 5, 12, 40])
@pytest.mark.parametrize("attention", ["full", "left", "right"])
@pytest.mark.parametrize("sides", ["both", "left", "right"])
def test_the_costs_of_a_window_are_its_pairs(sides: str, attention: str, length: int) -> None:
    if {sides, attention} == {"left", "right"}:
        with pytest.raises(UserError, match="leaves a token only itself"):
            changed({"local": Window(4, sides)}, attention=attention)
        return
    spec = changed({"local": Window(4, sides)}, attention=attention)
    place_1L = torch.arange(length)[None]
    seen_LL = Window(4, sides).attention(spec, 0).visible(place_1L, place_1L)[0, 0]
    seen_LL = {"full": seen_LL, "left": seen_LL.tril(), "right": seen_LL.triu()}[attention]
    plain = 100.0 * 2.0 * spec.matmul_parameters()
    pairs = (spec.forward_flops(100, length) - plain) / (100 * 4 * 3 * 16) * length
    assert pairs == pytest.approx(int(seen_LL.sum()))


def test_longformer_s_pairs() -> None:
    assert 4096 * Window(256).seen(PLAIN_BERT, 4096) == 2_035_456
    wide, plain = (changed(changes).build_one(VOCABULARY, 0)(batch_of()) for changes in ({"local": Window(L)}, {}))
    torch.testing.assert_close(wide.hidden_BLD, plain.hidden_BLD, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("changes", "shape", "said"),
    [
        ({"position": Rotary(), "far": Buckets()}, {}, "model.changes.far and model.changes.position both set the pos"),
        ({"one": SharedKey(), "two": SharedKey()}, {}, "both set the queries"),
        ({"keys": Squares()}, {}, "torch uses the name of model.changes.keys itself"),
        ({"a": Squares(), "b": Squares()}, {}, "model.changes.a and model.changes.b both replace the softmax"),
        ({"near": Alternating()}, {"sharing": "all"}, "differ between layers 0 and 1, which share their attention"),
        ({"local": Window(0)}, {}, "width=0, below 1"),
        ({"local": Window(2, "up")}, {}, "sides=up"),
        ({"heads": HeadSize(None, None)}, {}, "neither key nor value"),
        ({"heads": HeadSize(0)}, {}, "key=0, below 1"),
        ({"heads": HeadSize(5), "position": Rotary()}, {}, "rotates pairs of features, but each head has 5"),
        ({"scale": Unscaled(fold=True), "scores": SharedKey()}, {}, "fold=true need weights of queries"),
        ({"scores": QKNorm("batch")}, {}, "kind=batch"),
        ({"words": ScaledEmbeddings(0.0)}, {}, "scale=0.0, not above 0"),
        ({"odd": PLAIN_BERT}, {}, "model.changes.odd is Bert, not a change of an encoder"),
    ],
)
def test_what_does_not_go_together_is_refused(changes: Any, shape: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        changed(changes, **shape).build(VOCABULARY, 0)


def test_weights_of_parts_are_weights_of_their_layers() -> None:
    spec = changed({"relative": Relative(), "buckets": Buckets(), "normed": NormedHeads()})
    encoder = spec.build_one(VOCABULARY, 0)
    weights = dict(encoder.named_parameters())
    name = "backbone.encoder.layer.1.attention.self.parts.relative.of_key_RE"
    assert encoder.depth_of(name) == 2
    assert float(weights[name].detach().std()) == pytest.approx(0.5, rel=0.25)
    assert set(weights[name.replace("key", "value")].flatten().tolist()) == {0.25}
    assert set(weights[name.replace("relative.of_key_RE", "normed.query_norm.weight")].tolist()) == {1.0}
    assert sum("score_RH" in weight for weight in weights) == 1, "one table for all layers"
    assert list(encoder.backbone.encoder.layer[0].attention.self.parts) == ["buckets", "normed", "relative"]
    shared = replace(spec, sharing="all").build_one(VOCABULARY, 0)
    assert sum("parts." in weight for weight, _ in shared.named_parameters()) == 5


@pytest.mark.parametrize("shape", [{}, {"norm": "pre"}, {"sharing": "all", "embedding": 8}, {"embedding": 8}])
@pytest.mark.parametrize("name", [name for name in SETS if name != "neighbors"])
def test_a_checkpoint_gives_a_changed_encoder_back(name: str, shape: dict[str, Any], tmp_path: Path) -> None:
    spec, batch = changed(fitting(SETS[name], **shape), **shape), batch_of()
    encoder, other = spec.build_one(VOCABULARY, 3), spec.build_one(VOCABULARY, 4)
    checkpoint.save(encoder, MaskedLMHead(encoder), tmp_path)
    checkpoint.load(other, tmp_path)
    torch.testing.assert_close(other(batch).hidden_BLD, encoder(batch).hidden_BLD)
    if name == "rotary":
        assert (spec.lacks_class is None) == (shape.get("norm") != "pre")
    if spec.lacks_class is None:
        of_bert = changed({}, **shape).build_one(VOCABULARY, 3)
        checkpoint.save(of_bert, MaskedLMHead(of_bert), tmp_path / "bert")
        (theirs,) = AutoConfig.from_pretrained(tmp_path / "bert").architectures
        expected = "RoFormerForMaskedLM" if name == "rotary" else theirs
        assert AutoConfig.from_pretrained(tmp_path).architectures == [expected]
    else:
        with pytest.raises(ValueError, match="model_type"):
            AutoConfig.from_pretrained(tmp_path)


def test_two_changes_that_each_have_a_class_have_none_together() -> None:
    @dataclass(frozen=True)
    class Named(Change):
        def lacks_class(self, shape: Bert) -> str | None:
            return None

    assert changed({"named": Named()}).lacks_class is None
    both = changed({"position": Rotary(), "named": Named()})
    assert both.lacks_class == "transformers has no class for an encoder with Named and Rotary"


def test_a_choice_needs_a_name() -> None:
    for override in ("model/change=window", "+model/change=window", "model/change@model.changes.local=window"):
        with pytest.raises(UserError, match=r"write \+model/change@model.changes.NAME=CHOICE"):
            compose(["scale=test", override])
    with pytest.raises(UserError, match=r"model.changes.local does not apply to model=pretrained"):
        build(compose(["model=pretrained", "model.name=x", "+model/change@model.changes.local=window"]).model)


class OddPart(AttentionPart):
    """Breaks what `AttentionPart` says, in one way."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    def turn(self, query: Tensor, key: Tensor, place_Q: Tensor, place_K: Tensor) -> tuple[Tensor, Tensor]:
        return (query[:, :1], key) if self.how == "heads" else (query, key)

    def score(self, query: Tensor, key: Tensor, place_Q: Tensor, place_K: Tensor) -> Tensor | None:
        score_BHQK = query @ key.transpose(2, 3)
        return {"short": score_BHQK[..., :-1], "swapped": score_BHQK.transpose(1, 2)}.get(self.how)

    def visible(self, place_Q: Tensor, place_K: Tensor) -> Tensor | None:
        ahead_B1QK = place_K[:, None, None, :] - place_Q[:, None, :, None]
        cases = {
            "blind": ahead_B1QK > 600,
            "right": ahead_B1QK > 0,
            "float": ahead_B1QK.float(),
            "others": ahead_B1QK != 0,
        }
        return cases.get(self.how)


@dataclass(frozen=True)
class Odd(Change):
    how: str

    def attention(self, shape: Bert, layer: int) -> AttentionPart:
        return OddPart(self.how)


@pytest.mark.parametrize(
    ("how", "attention", "said"),
    [
        ("heads", "full", r"turn returns a query of shape \[2, 1, 5, 16\]"),
        ("short", "full", r"score returns shape \[2, 2, 5, 4\]: give one that broadcasts to \[2, 2, 5, 5\]"),
        ("swapped", "full", r"score returns shape \[2, 5, 2, 5\]"),
        ("float", "full", r"visible returns torch\.float32: give torch\.bool"),
        ("blind", "full", r"visible hides every key from the query at place 0 of a row that ends at 2"),
        ("right", "full", r"visible hides every key from the query at place 2 of a row that ends at 2"),
        ("others", "left", r"visible hides every key from the query at place 0"),
    ],
)
def test_a_part_that_breaks_its_contract_is_named_before_training(how: str, attention: str, said: str) -> None:
    with pytest.raises(UserError, match=rf"^model\.changes\.mine: {said}"):
        changed({"mine": Odd(how)}, heads=2, hidden=32, attention=attention).build(VOCABULARY, 0)


def test_a_token_may_be_hidden_from_itself() -> None:
    changed({"mine": Odd("others")}).build(VOCABULARY, 0)


def test_positions_are_those_that_a_change_sets(trust: Callable[..., None]) -> None:
    trust("toys_changes")
    model = plain(compose(["model/position=learned", "+model/change@model.changes.local=window"]).model)
    assert name_positions(model) == "learned"
    model["changes"]["far"] = {"_target_": "toys_changes.Buckets"}
    assert name_positions(model) == "buckets"


def test_lora_does_not_skip_a_matrix_in_silence() -> None:
    encoder = changed({"scores": SharedKey()}).build_one(VOCABULARY, 0)
    with pytest.raises(UserError, match="matrices has query, but the layers of the model have only dense, key, value"):
        Lora().check_network(encoder)
    Lora(matrices=["key", "value"]).shape(encoder, 0)
    assert sum("lora_A" in name for name, _ in encoder.named_parameters()) == 6
