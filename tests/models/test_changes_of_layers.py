"""Norms, feed-forward layers and initial weights: against papers, reference numbers and `transformers`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModelForMaskedLM, ModernBertConfig, T5Config
from transformers.activations import ACT2FN
from transformers.models.modernbert.modeling_modernbert import ModernBertMLP
from transformers.models.t5.modeling_t5 import T5DenseGatedActDense, T5LayerNorm

from paribus.core.errors import UserError
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.finetuning.adapters import Adapters
from paribus.finetuning.lora import Lora
from paribus.models import checkpoint
from paribus.models.bert import Bert
from paribus.models.change import Change
from paribus.models.changes.activation import KINDS, Activation
from paribus.models.changes.batch_norm import BatchNorm, BatchNormModule
from paribus.models.changes.deepnorm import DeepNorm
from paribus.models.changes.depth_scaled import DepthScaled
from paribus.models.changes.gated import Gated
from paribus.models.changes.mup import Mup
from paribus.models.changes.no_ffn import NoFeedForward
from paribus.models.changes.no_norm import NoNorm
from paribus.models.changes.rms_norm import RmsNorm
from paribus.models.changes.sandwich import Sandwich
from paribus.models.changes.scale_norm import ScaleNorm, ScaleNormModule
from paribus.models.encoder import Encoder
from paribus.models.heads.vocabulary import MaskedLMHead
from paribus.models.network import initialize
from paribus.optim.adamw import AdamW
from paribus.optim.spec import parameter_groups

B, L, V = 3, 12, 40
VOCABULARY = Vocabulary(size=V, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4))
POINTS = torch.tensor([-3, -1, -0.5, 0.5, 1, 2])


def encoder_of(change: Change | None = None, **shape: Any) -> Encoder:
    settings = {"dropout": 0.0, "attention_dropout": 0.0, "positions": 64, "initializer_range": 0.2, **shape}
    spec = Bert(3, 16, 2, 48, changes={} if change is None else {"part": change}, **settings)
    return spec.build_one(VOCABULARY, 0)


def batch_of(rows: int = B) -> dict[str, Any]:
    """Rows of 12, 9 and 11 tokens, or the first of them."""
    ids_BL = torch.randint(5, V, (B, L), generator=torch.Generator().manual_seed(1))[:rows]
    lengths = torch.tensor([L, 9, 11])[:rows]
    return {"ids_BL": ids_BL, "length_B": lengths, "part_BL": torch.zeros_like(ids_BL), "full": rows == 1}


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("gelu_tanh", [-0.003637, -0.158808, -0.154286, 0.345714, 0.841192, 1.954598]),
        ("gelu_sigmoid", [-0.018071, -0.154204, -0.149612, 0.350388, 0.845796, 1.935659]),
        ("relu", [0, 0, 0, 0.5, 1, 2]),
        ("squared_relu", [0, 0, 0, 0.25, 1, 4]),
        ("silu", [-0.142278, -0.268941, -0.188770, 0.311230, 0.731059, 1.761594]),
    ],
)
def test_activations(kind: str, values: list[float]) -> None:
    function = encoder_of(Activation(kind)).backbone.encoder.layer[2].intermediate.intermediate_act_fn
    torch.testing.assert_close(function(POINTS), torch.tensor(values), atol=1e-6, rtol=0)
    exact = torch.tensor([-0.004050, -0.158655, -0.154269, 0.345731, 0.841345, 1.954500])
    plain = encoder_of().backbone.encoder.layer[2].intermediate.intermediate_act_fn
    torch.testing.assert_close(plain(POINTS), exact, atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_transformers_loads_a_pre_ln_encoder_with_an_activation(kind: str, tmp_path: Path) -> None:
    encoder = encoder_of(Activation(kind), norm="pre").eval()
    head = MaskedLMHead(encoder)
    checkpoint.save(encoder, head, tmp_path)
    theirs = AutoModelForMaskedLM.from_pretrained(tmp_path).eval()
    assert theirs.config.hidden_act == KINDS[kind]
    batch = batch_of()
    mask_BL = (torch.arange(L) < batch["length_B"][:, None]).long()
    logits_BLV = theirs(input_ids=batch["ids_BL"], attention_mask=mask_BL).logits
    ours_BLV = head.scores(encoder(batch).hidden_BLD)
    torch.testing.assert_close(ours_BLV[mask_BL.bool()], logits_BLV[mask_BL.bool()], atol=1e-5, rtol=1e-5)
    assert encoder_of(Activation(kind)).spec.lacks_class is not None, "BERT's head would have the activation, too"


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_gated_layer_is_that_of_modernbert_and_t5(norm: str) -> None:
    layer = encoder_of(Gated("geglu"), norm=norm).backbone.encoder.layer[1]
    config = ModernBertConfig(hidden_size=16, intermediate_size=32, hidden_activation="gelu", mlp_bias=True)
    modern = ModernBertMLP(config)
    modern.Wi, modern.Wo = layer.intermediate.dense, layer.output.dense
    state = torch.randn(2, 5, 16)
    normed = layer.intermediate.LayerNorm(state) if norm == "pre" else state
    ours = layer.output.dense(layer.intermediate(state))
    torch.testing.assert_close(ours, modern(normed), atol=1e-5, rtol=1e-5)
    t5 = T5DenseGatedActDense(T5Config(d_model=16, d_ff=32, dropout_rate=0.0, feed_forward_proj="gated-gelu"))
    t5.act = ACT2FN["gelu"]  # T5 has the tanh form here
    with torch.no_grad():
        for theirs, own in zip((t5.wi_0, t5.wi_1), layer.intermediate.dense.weight.chunk(2), strict=True):
            theirs.weight.copy_(own)
        t5.wo.weight.copy_(layer.output.dense.weight)
    torch.testing.assert_close(ours, t5(normed), atol=1e-5, rtol=1e-5)  # biases are 0 at first


@pytest.mark.parametrize("kind", ["glu", "bilinear", "reglu", "geglu", "swiglu"])
def test_gates(kind: str) -> None:
    """Equations 5 and 6 of arXiv 2002.05202."""
    expected = {
        "glu": torch.sigmoid(POINTS),
        "bilinear": POINTS,
        "reglu": POINTS.clamp(min=0),
        "geglu": POINTS * torch.distributions.Normal(0, 1).cdf(POINTS),
        "swiglu": POINTS * torch.sigmoid(POINTS),
    }[kind]
    gate = encoder_of(Gated(kind)).backbone.encoder.layer[0].intermediate.intermediate_act_fn
    torch.testing.assert_close(gate(torch.cat([POINTS, POINTS + 4])), expected * (POINTS + 4))


@pytest.mark.parametrize("change", [None, Gated(), Gated(width=20), NoFeedForward()])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_costs_and_weights_of_feed_forward_layers(change: Change | None, norm: str) -> None:
    encoder, batch = encoder_of(change, norm=norm), batch_of()
    with FlopCounterMode(display=False) as counted:
        encoder(batch)
    assert encoder.spec.forward_flops(B * L, L) == counted.get_total_flops()
    saved = encoder_of(norm=norm).parameter_count() - encoder.parameter_count()
    expected = {None: 0, Gated(): -(64 - 48), Gated(width=20): 16 * (2 * 48 - 3 * 20) - (40 - 48)}
    whole = 2 * 16 * 48 + 48 + 16 + 2 * 16  # two matrices, their biases, a LayerNorm
    assert saved == 3 * expected.get(change, whole)


def test_rms_norm_is_t5_s() -> None:
    encoder = encoder_of(RmsNorm())
    norm, theirs = encoder.backbone.encoder.layer[0].output.LayerNorm, T5LayerNorm(16, eps=encoder.norm_eps)
    with torch.no_grad():
        norm.weight.copy_(torch.arange(16.0))
        theirs.weight.copy_(torch.arange(16.0))
    state = torch.randn(2, 5, 16) + 3
    torch.testing.assert_close(norm(state), theirs(state), atol=1e-5, rtol=1e-5)


def test_scale_norm_has_one_length() -> None:
    norm = encoder_of(ScaleNorm()).backbone.encoder.layer[0].output.LayerNorm
    state = torch.randn(2, 5, 16) + 3
    torch.testing.assert_close(norm(state), 4 * state / state.norm(dim=-1, keepdim=True))
    assert norm(torch.zeros(2, 16)).abs().sum() == 0


@pytest.mark.parametrize("shape", [{}, {"norm": "pre"}, {"embedding": 8}])
@pytest.mark.parametrize("change", [RmsNorm(), ScaleNorm(), BatchNorm(), NoNorm()])
def test_every_norm_is_replaced_and_none_decays(change: Change, shape: dict[str, Any]) -> None:
    encoder, plain = encoder_of(change, **shape), encoder_of(**shape)
    kind = {RmsNorm: nn.RMSNorm, ScaleNorm: ScaleNormModule, BatchNorm: BatchNormModule}.get(type(change))
    norms = list(encoder.norms())
    assert len(norms) == (len(list(plain.norms())) if kind else 0)
    assert all(type(norm) is kind for norm in norms)
    assert not any(isinstance(module, nn.LayerNorm) for module in encoder.modules())
    groups = parameter_groups(encoder.named_parameters(), 0.01)
    decayed = {id(weight) for group in groups if group["weight_decay"] for weight in group["params"]}
    assert not decayed & {id(weight) for norm in norms for weight in norm.parameters()}
    assert isinstance(MaskedLMHead(encoder).norm, nn.LayerNorm)
    saved = {RmsNorm: lambda width: width, ScaleNorm: lambda width: 2 * width - 1, BatchNorm: lambda _: 0}
    count = saved.get(type(change), lambda width: 2 * width)
    expected = sum(count(norm.normalized_shape[0]) for norm in plain.norms())
    assert plain.parameter_count() - encoder.parameter_count() == expected


def test_statistics_of_a_batch() -> None:
    """The reference's rows [[1, 2], [3, 6]] and [[5, 2], padding]."""
    state_BLD = torch.tensor([[[1.0, 2], [3, 6]], [[5, 2], [0, 0]]])
    real_BL = torch.tensor([[True, True], [True, False]])
    padded, masked = BatchNormModule(2, 1.0), BatchNormModule(2, 1.0)
    masked.real_BL = real_BL
    normed = {name: norm(state_BLD) for name, norm in (("padded", padded), ("masked", masked))}
    assert padded.running_mean.tolist() == [2.25, 2.5]
    torch.testing.assert_close(masked.running_mean, torch.tensor([3, 3.3333]), atol=1e-4, rtol=0)
    torch.testing.assert_close(masked.running_variance, torch.tensor([4, 5.3333]), atol=1e-4, rtol=0)
    by_hand = (state_BLD - torch.tensor([3, 10 / 3])) / (torch.tensor([8 / 3, 32 / 9]) + 1e-5).sqrt()
    torch.testing.assert_close(normed["masked"], by_hand)
    theirs = nn.BatchNorm1d(2, momentum=0.1)
    ours = BatchNormModule(2, 0.1)
    torch.testing.assert_close(ours(state_BLD).flatten(0, 1), theirs(state_BLD.flatten(0, 1)))
    torch.testing.assert_close(ours.running_variance, theirs.running_var)
    torch.testing.assert_close(ours.eval()(state_BLD).flatten(0, 1), theirs.eval()(state_BLD.flatten(0, 1)))


@pytest.mark.parametrize("masked", [True, False])
def test_padding_enters_statistics_unless_it_is_masked(masked: bool) -> None:
    """Rows of the same real tokens, cut shorter and with padding behind: only masked statistics are the same."""
    encoder = encoder_of(BatchNorm(masked))
    rows = {name: value[1:2] for name, value in batch_of().items() if name != "full"}
    short = {name: value[:, :9] if value.ndim > 1 else value for name, value in rows.items()}
    states = [encoder({**batch, "full": full}).hidden_BLD[0, :9] for batch, full in ((rows, False), (short, True))]
    assert torch.allclose(*states, atol=1e-5) == masked


def test_batch_norm_leaks_the_future_of_a_causal_model_in_training_alone() -> None:
    encoder = encoder_of(BatchNorm(), attention="left")
    batch = batch_of(1)
    other = {**batch, "ids_BL": batch["ids_BL"].clone()}
    other["ids_BL"][0, 8:] = 6

    def difference() -> float:
        return float((encoder(batch).hidden_BLD - encoder(other).hidden_BLD)[0, :8].abs().max().detach())

    assert difference() > 0.1, "states of the first 8 tokens have seen the last 4"
    encoder.eval()
    assert difference() == 0.0


def test_a_checkpoint_keeps_running_statistics(tmp_path: Path) -> None:
    encoder, other = encoder_of(BatchNorm()), encoder_of(BatchNorm())
    encoder(batch_of())
    checkpoint.save(encoder, None, tmp_path)
    checkpoint.load(other, tmp_path)
    batch = batch_of()
    assert torch.equal(encoder.eval()(batch).hidden_BLD, other.eval()(batch).hidden_BLD)
    assert not torch.equal(other(batch).hidden_BLD, encoder_of(BatchNorm()).eval()(batch).hidden_BLD)


@pytest.mark.parametrize("kind", [None, RmsNorm()])
def test_a_sandwich_has_a_norm_on_both_sides_of_a_sublayer(kind: Change | None) -> None:
    spec = Bert(1, 16, 2, 48, norm="pre", dropout=0.0, attention_dropout=0.0, initializer_range=0.2)
    changes = {"placement": Sandwich(), **({} if kind is None else {"norm": kind})}
    encoder = Bert(**{**vars(spec), "changes": changes}).build_one(VOCABULARY, 0)
    layer, state = encoder.backbone.encoder.layer[0], torch.randn(2, 5, 16)
    assert all(type(norm) is (nn.LayerNorm if kind is None else nn.RMSNorm) for norm in encoder.norms())
    read, _ = layer.attention.self(layer.attention.LayerNorm(state))
    middle = state + layer.attention.output.LayerNorm(layer.attention.output.dense(read))
    inner = layer.intermediate.intermediate_act_fn(layer.intermediate.dense(layer.intermediate.LayerNorm(middle)))
    torch.testing.assert_close(layer(state), middle + layer.output.LayerNorm(layer.output.dense(inner)))


def test_deepnorm_adds_its_input_alpha_times() -> None:
    encoder, plain = encoder_of(DeepNorm()), encoder_of()
    layer, state = encoder.backbone.encoder.layer[1], torch.randn(2, 5, 16)
    read, _ = layer.attention.self(state)
    middle = layer.attention.output.LayerNorm(layer.attention.output.dense(read) + 6**0.25 * state)
    inner = layer.output.dense(layer.intermediate(middle))
    torch.testing.assert_close(layer(state), layer.output.LayerNorm(inner + 6**0.25 * middle))
    smaller = {"value", "attention.output.dense", "intermediate.dense", "output.dense"}
    for name, weight in layer.named_parameters():
        share = 24**-0.25 if name.endswith(".weight") and any(part in name for part in smaller) else 1.0
        torch.testing.assert_close(weight, share * plain.backbone.encoder.layer[1].get_parameter(name))


def test_weights_that_end_a_sublayer_are_scaled_by_the_depth() -> None:
    scaled, plain = (dict(encoder_of(change).named_parameters()) for change in (DepthScaled(), None))
    ends = {name for name in plain if name.endswith("output.dense.weight")}
    assert len(ends) == 2 * 3
    for name, weight in scaled.items():
        torch.testing.assert_close(weight, plain[name] * (6**-0.5 if name in ends else 1.0))


def test_mup_changes_nothing_at_its_base() -> None:
    encoder, plain = encoder_of(Mup(16, 2)), encoder_of()
    assert torch.equal(encoder(batch_of()).hidden_BLD, plain(batch_of()).hidden_BLD)
    assert {encoder.rate(name) for name, _ in encoder.named_parameters()} == {1.0}
    assert encoder.logit_scale == 1.0


def test_mup_at_four_times_its_base() -> None:
    """Table 8 of arXiv 2203.03466, as ratios to the base; heads are twice as wide as those of the base."""
    encoder, plain = encoder_of(Mup(4, 1)), encoder_of()
    matrices = {f"backbone.{name}.weight" for _, name in encoder.matrices()}
    assert len(matrices) == 3 * 6
    for name, weight in encoder.named_parameters():
        torch.testing.assert_close(weight, plain.get_parameter(name) * (0.5 if name in matrices else 1.0))
        assert encoder.rate(name) == (0.25 if name in matrices else 1.0)
    assert (encoder.logit_scale, encoder_of(Mup(4, 1), embedding=8).logit_scale) == (0.25, 1.0)
    part = encoder.backbone.encoder.layer[0].attention.self.parts.part
    query, key, place_1L = torch.randn(1, 2, 5, 8), torch.randn(1, 2, 5, 8), torch.arange(5)[None]
    turned, same = part.turn_scaled(query, key, place_1L, place_1L, 8**-0.5)
    torch.testing.assert_close(turned @ same.transpose(2, 3), query @ key.transpose(2, 3) * 4**0.5 / 8)


def test_a_step_moves_the_scores_of_tokens_alike_at_every_width() -> None:
    """The check of coordinates that the authors' code recommends."""

    def moved(width: int, mup: bool) -> float:
        heads = width // 16
        spec = Bert(2, width, heads, 3 * width, dropout=0.0, attention_dropout=0.0, positions=64, norm="pre")
        encoder = replace(spec, changes={"init": Mup(32, 2)} if mup else {}).build_one(VOCABULARY, 0)
        head = MaskedLMHead(encoder)
        initialize(head, 0, 0.02)
        weights = [*encoder.named_parameters(), *((f"head.{name}", weight) for name, weight in head.named_parameters())]
        optimizer = AdamW(lr=2e-3).build(weights, rates=encoder.rate)
        for group in optimizer.param_groups:
            group["lr"] = 2e-3 * group["rate"]
        batch = batch_of()
        before = head.scores(encoder(batch).hidden_BLD)
        for _ in range(3):
            scores = head.scores(encoder(batch).hidden_BLD)
            nn.functional.cross_entropy(scores.flatten(0, 1), batch["ids_BL"].flatten()).backward()
            optimizer.step()
            optimizer.zero_grad()
        return float((head.scores(encoder(batch).hidden_BLD) - before).abs().mean().detach())

    ratios = {mup: moved(256, mup) / moved(32, mup) for mup in (True, False)}
    assert ratios[True] < 1.5, ratios
    assert ratios[False] > 3, ratios


@pytest.mark.parametrize(
    ("change", "shape", "said"),
    [
        (Sandwich(), {}, "sandwich adds norms to pre-LN, but model.norm=post"),
        (DeepNorm(), {"norm": "pre"}, "deepnorm is a kind of post-LN, but model.norm=pre"),
        (BatchNorm(), {"sharing": "all"}, "statistics of each layer, but model.sharing=all"),
        (BatchNorm(momentum=0.0), {}, "momentum=0.0"),
        (Gated(width=0), {}, "geglu has width=0"),
        (Mup(16, 3), {}, "mup has base_hidden=16 and base_heads=3"),
    ],
)
def test_what_does_not_fit_is_refused(change: Change, shape: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        encoder_of(change, **shape)


def test_a_gated_layer_needs_a_whole_number() -> None:
    with pytest.raises(UserError, match=r"2/3 as wide as model.intermediate=512, which is no.*model.intermediate=513"):
        Bert(1, 16, 2, 512, changes={"ffn": Gated()})
    for kind in (Activation, Gated):
        with pytest.raises(UserError, match="unknown kind=swish"):
            kind("swish")
    with pytest.raises(UserError, match="both set the feed-forward layers"):
        Bert(1, 16, 2, 48, changes={"ffn": Gated(), "act": Activation()})
    with pytest.raises(UserError, match="both set the residual sums"):
        Bert(1, 16, 2, 48, norm="pre", changes={"norm": NoNorm(), "placement": Sandwich()})


@pytest.mark.parametrize("change", [Gated(), ScaleNorm(), BatchNorm(), DeepNorm()])
def test_adapters_and_lora_enter_changed_layers(change: Change) -> None:
    adapted = encoder_of(change)
    Adapters(size=4).shape(adapted, 0)
    assert sum("down.weight" in name for name, _ in adapted.named_parameters()) == 2 * 3
    assert all(weight.requires_grad for norm in adapted.norms() for weight in norm.parameters())
    low_rank = encoder_of(change)
    Lora(matrices=["query", "dense"]).shape(low_rank, 0)
    assert sum("lora_A" in name for name, _ in low_rank.named_parameters()) == 4 * 3
    for encoder in (adapted, low_rank):
        encoder(batch_of()).hidden_BLD.sum().backward()


def test_adapters_need_the_sublayers_that_they_follow() -> None:
    with pytest.raises(UserError, match=r"finetune.method.after has ffn, but the layers of the model have none"):
        Adapters(size=4).shape(encoder_of(NoFeedForward()), 0)
    encoder = encoder_of(NoFeedForward())
    Adapters(size=4, after=["attention"]).shape(encoder, 0)
    assert sum("down.weight" in name for name, _ in encoder.named_parameters()) == 3
