"""T5's architectures: equal to the reference implementation, leak nothing, start as T5 does, survive the disk."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import T5ForConditionalGeneration
from transformers.modeling_outputs import BaseModelOutput

from paribus.core.errors import UserError
from paribus.corruption.views.sentinels import UniqueSentinel
from paribus.data.sequences import Sequences
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.models import checkpoint
from paribus.models.network import as_batch, initialize
from paribus.models.t5 import ACTIVATIONS, ARCHITECTURES, SINGLE, T5
from paribus.models.text_to_text import TextToText
from paribus.objectives.denoising import Denoising
from paribus.objectives.objective import Objective

VOCABULARY = Vocabulary(100, 0, 1, 2, 3, 4, (0, 1, 2, 3, 4, *range(90, 100)), 10, 99)
PAIRS = tuple(name for name in ARCHITECTURES if name not in SINGLE)


def spec(**changes: Any) -> T5:
    return T5(**{"layers": 2, "hidden": 32, "heads": 2, "key_width": 16, "intermediate": 48, "dropout": 0.0, **changes})


def parts(**changes: Any) -> tuple[TextToText, Objective]:
    model = spec(**changes).build(VOCABULARY, seed=3)
    objective = Denoising(UniqueSentinel("noise"), UniqueSentinel("text")).compose(model, model.vocabulary)
    initialize(objective, 3, model.spec.initializer_range)
    return model.eval(), objective


def rows(seed: int, lengths: list[int]) -> Sequences:
    """Random rows, each with its end, padded."""
    random = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, 90, (len(lengths), max(lengths)), generator=random)
    for row, length in enumerate(lengths):
        ids[row, length - 1], ids[row, length:] = VOCABULARY.sep, VOCABULARY.pad
    return Sequences(ids.numpy(), torch.tensor(lengths).numpy())


def batch_of(model: TextToText, read: Sequences, written: Sequences) -> dict[str, Any]:
    return as_batch(model.spec.collator.join(read, written, VOCABULARY.pad) | {"counts": {}})


def ragged(model: TextToText) -> dict[str, Any]:
    return batch_of(model, rows(1, [40, 23, 31]), rows(2, [9, 17, 5]))


def reference(folder: Path, attention: str = "eager") -> Any:
    return T5ForConditionalGeneration.from_pretrained(folder, attn_implementation=attention).eval()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_fused_and_the_plain_form_of_attention_agree(architecture: str) -> None:
    model, objective = parts(architecture=architecture)
    losses = {}
    for kernel in ("eager", "sdpa"):
        for part in model.modules():
            if hasattr(part, "config"):
                part.config._attn_implementation = kernel
        losses[kernel] = float(objective(model, ragged(model))[0]["denoising"].detach())
    assert losses["eager"] == pytest.approx(losses["sdpa"], rel=1e-5)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("architecture", PAIRS)
def test_the_loss_is_that_of_transformers_in_its_eager_form(tmp_path: Path, architecture: str, activation: str) -> None:
    model, objective = parts(architecture=architecture, activation=activation)
    batch = ragged(model)
    checkpoint.save(model, objective.heads["denoising"], tmp_path)
    with torch.no_grad():
        (found,) = objective(model, batch)[0].values()
        labels = torch.full(batch["decoder_ids_BT"].shape, -100)
        labels.view(-1)[batch["slot_P"]] = batch["target_P"]
        column = torch.arange(batch["ids_BL"].shape[1])
        mask = (column < batch["length_B"][:, None]).long()
        expected = reference(tmp_path)(input_ids=batch["ids_BL"], attention_mask=mask, labels=labels).loss
    assert float(found / len(batch["target_P"])) == pytest.approx(float(expected), abs=1e-5)


def test_gradients_are_those_of_transformers(tmp_path: Path) -> None:
    model, objective = parts()
    batch = batch_of(model, rows(1, [40, 40]), rows(2, [9, 9]))
    checkpoint.save(model, objective.heads["denoising"], tmp_path)
    theirs = reference(tmp_path)
    theirs(input_ids=batch["ids_BL"], labels=batch["target_P"].view(2, 9)).loss.backward()
    (objective(model, batch)[0]["denoising"] / 18).backward()
    own = {name: parameter.grad for name, parameter in model.backbone.named_parameters()}
    for name, parameter in theirs.named_parameters():
        assert torch.allclose(own[name], parameter.grad, atol=1e-5), name


def test_bfloat16_is_within_two_percent() -> None:
    model, objective = parts()
    batch = ragged(model)
    with torch.no_grad():
        exact = float(objective(model, batch)[0]["denoising"])
        with torch.autocast("cpu", torch.bfloat16):
            rounded = float(objective(model, batch)[0]["denoising"])
    assert rounded != exact
    assert rounded == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_hidden_token_leaves_what_is_before_it_unchanged(architecture: str) -> None:
    model, _ = parts(architecture=architecture)
    read, written = rows(1, [12]), rows(2, [8])
    changed = written._replace(ids_BL=written.ids_BL.copy())
    changed.ids_BL[0, 4] = 7 if written.ids_BL[0, 4] != 7 else 8
    first = 12 if model.spec.single else 0  # where the first token written is read off
    with torch.no_grad():
        before, after = (model(batch_of(model, read, own)).hidden_BLD[0, first:] for own in (written, changed))
    assert torch.equal(before[:5], after[:5])
    assert not torch.isclose(before[5:], after[5:]).all(-1).any()


def test_a_prefix_is_seen_from_both_sides_and_a_language_model_looks_left() -> None:
    for architecture, sees in (("prefix_lm", True), ("language_model", False)):
        model, _ = parts(architecture=architecture)
        read, written = rows(1, [12]), rows(2, [8])
        changed = read._replace(ids_BL=read.ids_BL.copy())
        changed.ids_BL[0, 9] = 7 if read.ids_BL[0, 9] != 7 else 8
        with torch.no_grad():
            before, after = (model(batch_of(model, own, written)).hidden_BLD[0] for own in (read, changed))
        assert torch.equal(before[:9], after[:9]) is not sees
        assert not torch.isclose(before[10:], after[10:]).all(-1).any()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_padding_and_company_do_not_matter(architecture: str) -> None:
    model, objective = parts(architecture=architecture)
    with torch.no_grad():
        together = objective.heads["denoising"](model(ragged(model)), ragged(model))
        alone = 0.0
        for read, written in zip([40, 23, 31], [9, 17, 5], strict=True):
            row = [40, 23, 31].index(read)
            own = [rows(s, ls) for s, ls in ((1, [40, 23, 31]), (2, [9, 17, 5]))]
            single = [
                Sequences(part.ids_BL[row : row + 1, :n], part.length_B[row : row + 1])
                for part, n in zip(own, (read, written), strict=True)
            ]
            alone += float(objective(model, batch_of(model, *single))[0]["denoising"])
    assert float(together) == pytest.approx(alone, rel=1e-5)


def test_the_decoder_does_not_see_places_that_are_not_shown() -> None:
    model, _ = parts()
    model.backbone.encoder.forward = lambda **given: read  # states that differ at one place alone
    batch, read = ragged(model), None
    states, hidden = torch.randn(3, 40, 32), (0, 7)
    other = states.clone()
    other[hidden] += 5.0
    shown_BL = torch.arange(40) < batch["length_B"][:, None]
    found = []
    for shows in (True, False):
        shown_BL[hidden] = shows
        for one in (states, other):
            read = BaseModelOutput(last_hidden_state=one)
            found.append(model(batch | {"shown_BL": shown_BL}).hidden_BLD[0])
    assert not torch.equal(found[0], found[1])
    assert torch.equal(found[2], found[3])


def test_relative_positions_are_told_apart_as_t5_does() -> None:
    bucket: Any = type(parts()[0].backbone.encoder.block[0].layer[0].SelfAttention)._relative_position_bucket
    both = bucket(torch.tensor([-200, -128, -20, -8, -7, 0, 1, 7, 8, 20, 200]), True, 32, 128).tolist()
    assert both == [15, 15, 10, 8, 7, 0, 17, 23, 24, 26, 31]  # Raffel et al., Mesh TensorFlow's formula by hand
    attention = {name: parts(architecture=name)[0].backbone.decoder.block[0].layer[0].SelfAttention for name in SINGLE}
    assert attention["language_model"].is_decoder  # all buckets to the left
    assert not attention["prefix_lm"].is_decoder


def test_sizes_are_as_the_paper_counts_them() -> None:
    count = {name: parts(architecture=name, layers=4)[0].parameter_count() for name in ARCHITECTURES}
    table = 100 * 32
    cross = 4 * (4 * 32 * 32 + 32)  # of four layers, with its norm
    stack = count["language_model"] - table
    assert count["prefix_lm"] == count["language_model"]
    assert count["encoder_decoder"] == table + 2 * stack + cross
    assert count["encoder_decoder_shared"] == table + stack + cross + 32 * 2  # and relative biases of its own
    assert count["encoder_decoder_half"] < count["encoder_decoder_shared"]


def test_initial_weights_have_t5s_scales_and_depend_on_name_and_seed() -> None:
    model, _ = parts(hidden=256, key_width=64, intermediate=1024, heads=4)
    theirs = dict(model.backbone.named_parameters())
    scales = {
        "shared.weight": 1.0,
        "encoder.block.1.layer.0.SelfAttention.q.weight": (256 * 64) ** -0.5,
        "encoder.block.1.layer.0.SelfAttention.k.weight": 256**-0.5,
        "decoder.block.1.layer.1.EncDecAttention.o.weight": (4 * 64) ** -0.5,
        "decoder.block.1.layer.2.DenseReluDense.wi.weight": 256**-0.5,
        "decoder.block.1.layer.2.DenseReluDense.wo.weight": 1024**-0.5,
    }
    for name, scale in scales.items():
        assert float(theirs[name].detach().std()) == pytest.approx(scale, rel=0.03)
    again, other = (spec(layers=layers).build(VOCABULARY, 3).state_dict() for layers in (2, 4))
    assert all(torch.equal(again[name], other[name]) for name in again)


def test_depths_rise_in_both_stacks_from_the_embeddings_to_the_end() -> None:
    model, _ = parts()
    names = [
        "backbone.shared.weight",
        *(f"backbone.encoder.block.{n}.layer.0.SelfAttention.q.weight" for n in range(2)),
        *(f"backbone.decoder.block.{n}.layer.2.layer_norm.weight" for n in range(2)),
    ]
    assert [model.depth_of(name) for name in names] == [0, 1, 2, 1, 2]
    assert model.depth_of("backbone.decoder.final_layer_norm.weight") == model.depth == 2
    assert all(name in dict(model.named_parameters()) for name in names)


def test_operations_count_both_stacks() -> None:
    """At short rows they are twice the matrix weights, each as often as it is used."""
    full, half, single = (spec(architecture=name) for name in (PAIRS[0], PAIRS[2], "language_model"))
    layer = 2 * (4 * 32 * 32 + 2 * 32 * 48)
    keys, queries = 2 * 2 * 32 * 32, 2 * 2 * 32 * 32
    read = full.forward_flops(1000, 1, 0, 1000)
    assert read == pytest.approx(1000 * 2 * (layer + keys + 4 * 32))
    both = full.forward_flops(1000, 1, 1000, 1000)
    assert both - read == pytest.approx(1000 * 2 * (layer + queries + 4 * 32 * 2))
    assert half.forward_flops(1000, 1, 1000, 1000) == pytest.approx(both / 2)
    assert single.forward_flops(1000, 1, 500, 1000) == pytest.approx(1000 * 2 * (layer + 4 * 32))
    lengths = [single.forward_flops(1000, 1, 500, rows) for rows in (1000, 100, 10)]
    assert all(short < long for short, long in pairwise(lengths))
    prefix = spec(architecture="prefix_lm")
    assert prefix.forward_flops(1000, 1, 500, 10) > single.forward_flops(1000, 1, 500, 10)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"architecture": "bart"}, "model.architecture=bart is unknown"),
        ({"architecture": "encoder_decoder_half", "layers": 3}, "is odd"),
        ({"heads": 0}, "below 1"),
        ({"buckets": 3}, "model.buckets=3"),
    ],
)
def test_shapes_that_cannot_be_built_are_refused(changes: dict[str, Any], match: str) -> None:
    with pytest.raises(UserError, match=match):
        spec(**changes)
