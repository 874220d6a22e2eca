"""Narrow embeddings and layers that share weights, as in ALBERT."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AlbertForPreTraining, AutoModelForMaskedLM

from paribus.core.build import build
from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.corruption.views.replace import Replace
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.models import checkpoint
from paribus.models.bert import Bert
from paribus.models.encoder import Encoder
from paribus.models.network import as_batch, initialize
from paribus.objectives.mlm import MaskedLMWithSOP
from paribus.objectives.objective import Objective
from paribus.training.budget import train_flops
from paribus.training.description import Run
from paribus.training.run import run
from paribus.verdict.published import table

VOCABULARY = Vocabulary(size=97, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4))
WIDE = dataclasses.replace(VOCABULARY, size=30000)
PARTS = {"attention": ["attention"], "ffn": ["intermediate", "output"]}
PARTS["all"] = PARTS["attention"] + PARTS["ffn"]
ALBERT = {"embedding": 16, "sharing": "all"}


def small(**settings: Any) -> Bert:
    given = {"positions": 40, "dropout": 0.0, "attention_dropout": 0.0, "initializer_range": 0.2, **settings}
    return Bert(4, 32, 2, 64, **given)


def parts(seed: int = 3, **settings: Any) -> tuple[Encoder, Objective]:
    encoder = small(**settings).build(VOCABULARY, seed)
    objective = MaskedLMWithSOP(Replace()).compose(encoder, encoder.vocabulary)
    initialize(objective, seed, 0.2)
    return encoder, objective


def packed(rows: int = 7) -> dict[str, Any]:
    random = np.random.default_rng(0)
    length_B = random.integers(8, 25, rows)
    real_BL = np.arange(24) < length_B[:, None]
    ids_BL = np.where(real_BL, random.integers(5, 97, (rows, 24)), 0)
    slot_P = np.sort(random.permutation(np.flatnonzero(real_BL))[: rows * 3])
    target_P = ids_BL.reshape(-1)[slot_P].copy()
    ids_BL.reshape(-1)[slot_P] = 4
    counts = {"predicted": len(slot_P), "pairs": rows, "input_tokens": int(length_B.sum())}
    part_BL = (np.arange(24) >= 6).astype(np.int64) * real_BL
    arrays = {"ids_BL": ids_BL, "length_B": length_B, "part_BL": part_BL, "slot_P": slot_P, "target_P": target_P}
    return {**arrays, "label_N": np.arange(rows) % 3 % 2, "counts": counts}


def theirs_reads(arrays: dict[str, Any]) -> dict[str, torch.Tensor]:
    labels = np.full_like(arrays["ids_BL"], -100)
    labels.reshape(-1)[arrays["slot_P"]] = arrays["target_P"]
    mask_BL = (np.arange(24) < arrays["length_B"][:, None]).astype(np.int64)
    named = {"input_ids": arrays["ids_BL"], "attention_mask": mask_BL, "labels": labels}
    return {name: torch.from_numpy(a) for name, a in {**named, "token_type_ids": arrays["part_BL"]}.items()}


@pytest.mark.parametrize(
    ("layers", "groups", "expected"),
    [
        (12, 1, [0] * 12),
        (12, 4, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]),
        (5, 3, [0, 0, 1, 1, 2]),
        (7, 2, [0, 0, 0, 0, 1, 1, 1]),
        (22, 22, list(range(22))),  # in floating point layer 15 falls into group 14
    ],
)
def test_a_layer_belongs_to_the_group_of_the_formula(layers: int, groups: int, expected: list[int]) -> None:
    spec = Bert(layers, 8, 2, 8, sharing="all", groups=groups)
    assert [spec.group(layer) for layer in range(layers)] == expected
    assert [spec.first_of_group(layer) for layer in range(layers)] == [expected.index(group) for group in expected]


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("sharing", ["all", "attention", "ffn"])
def test_shared_parts_are_the_same_weights_and_no_others(norm: str, sharing: str) -> None:
    encoder, _ = parts(norm=norm, sharing=sharing, groups=2)
    layers = encoder.backbone.encoder.layer
    for part in PARTS["all"]:
        for here, there in ((0, 1), (2, 3), (1, 2)):
            pairs = zip(
                getattr(layers[here], part).parameters(), getattr(layers[there], part).parameters(), strict=True
            )
            same = [a.data_ptr() == b.data_ptr() for a, b in pairs]
            assert set(same) == {part in PARTS[sharing] and (here, there) != (1, 2)}


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_gradients_of_shared_weights_are_sums_over_the_layers(norm: str) -> None:
    shared, objective = parts(norm=norm, sharing="all")
    apart, _ = parts(norm=norm)
    for layer in apart.backbone.encoder.layer:
        layer.load_state_dict(shared.backbone.encoder.layer[0].state_dict())
    for encoder in (shared, apart):
        objective.heads["mlm"]._network[0] = encoder
        sum(objective(encoder, as_batch(packed()))[0].values()).backward()  # type: ignore[union-attr]
    gradients = {name: p.grad for name, p in apart.named_parameters()}
    for name, parameter in shared.named_parameters():
        copies = [gradients[name.replace("layer.0.", f"layer.{number}.")] for number in range(4)]
        expected = sum(copies) if "layer.0." in name else copies[0]  # type: ignore[arg-type]
        assert torch.allclose(parameter.grad, expected, rtol=1e-4, atol=1e-4), name  # type: ignore[arg-type]


def test_shared_weights_start_from_the_bits_of_the_first_layer() -> None:
    shared, apart = parts(sharing="all", groups=2)[0], parts()[0]
    start = dict(apart.named_parameters())
    assert {name.split(".")[3] for name, _ in shared.named_parameters() if "layer." in name} == {"0", "2"}
    assert all(torch.equal(parameter, start[name]) for name, parameter in shared.named_parameters())


def test_a_copy_for_fine_tuning_shares_as_the_original() -> None:
    encoder, _ = parts(**ALBERT)
    own = copy.deepcopy(encoder)
    assert own.parameter_count() == encoder.parameter_count()
    assert not {p.data_ptr() for p in own.parameters()} & {p.data_ptr() for p in encoder.parameters()}


def test_parameters_are_counted_as_by_hand() -> None:
    embeddings = (97 + 40 + 2 + 2) * 16  # words, positions, parts, LayerNorm
    attention, ffn = 4 * (32 * 32 + 32) + 64, 2 * 32 * 64 + 64 + 32 + 64
    counts = {
        "all": attention + ffn,
        "attention": attention + 4 * ffn,
        "ffn": 4 * attention + ffn,
        "none": 4 * (attention + ffn),
    }
    for sharing, layers in counts.items():
        assert parts(embedding=16, sharing=sharing)[0].parameter_count() == embeddings + 16 * 32 + 32 + layers
        wide = parts(sharing=sharing)[0].parameter_count()
        assert wide == 2 * embeddings + layers, "one width, no projection"
        assert parts(embedding=32, sharing=sharing)[0].parameter_count() == wide


ROWS = {row.arm: row.config for name in ("albert_table3", "albert_table4") for row in table(name).rows}
SHARING = {"not-shared": "none", "all-shared": "all", "shared-attention": "attention", "shared-FFN": "ffn"}


@pytest.mark.parametrize("row", sorted(ROWS))
def test_base_size_has_the_papers_parameters(row: str) -> None:
    sharing = next(ours for theirs, ours in SHARING.items() if theirs in row)
    shape = [f"model.embedding={ROWS[row]['E']}", f"model.sharing={sharing}"]
    spec = build(compose(["model=bert_base", "model/position=learned", *shape]).model)
    with torch.device("meta"):
        count = Encoder(spec, WIDE).parameter_count()
    printed = float(str(ROWS[row]["params"]).removesuffix("M"))
    assert abs(count / 1e6 - printed) <= 1.0, "the paper rounds both ways, with and without the pooler"


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_losses_equal_those_of_albert(groups: int, tmp_path: Path) -> None:
    encoder, objective = parts(**ALBERT, groups=groups)
    arrays = packed()
    batch = as_batch(arrays)
    sums = {name: float(value.detach()) for name, value in objective(encoder, batch)[0].items()}
    checkpoint.save(encoder, objective.heads["mlm"], tmp_path, objective.heads["sop"])
    theirs, told = AlbertForPreTraining.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(told[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    output = theirs.eval()(**theirs_reads(arrays), sentence_order_label=batch["label_N"])
    assert sums["mlm"] / 21 + sums["sop"] / 7 == pytest.approx(float(output.loss), abs=1e-5)
    mlm = torch.nn.functional.cross_entropy(
        output.prediction_logits.flatten(0, 1), theirs_reads(arrays)["labels"].flatten()
    )
    assert sums["mlm"] / 21 == pytest.approx(float(mlm), abs=1e-5)
    assert (
        sum(p.numel() for p in theirs.albert.encoder.parameters())
        + sum(p.numel() for p in theirs.albert.embeddings.parameters())
        == encoder.parameter_count()
    )


LOADED = [
    ({"sharing": "all"}, "BertForMaskedLM"),
    ({"sharing": "attention", "groups": 2}, "BertForMaskedLM"),
    ({"sharing": "ffn", "norm": "pre"}, "RobertaPreLayerNormForMaskedLM"),
    (ALBERT, "AlbertForMaskedLM"),
    ({**ALBERT, "groups": 3}, "ElectraForMaskedLM"),
    ({"embedding": 16}, "ElectraForMaskedLM"),
    ({"embedding": 16, "sharing": "ffn"}, "ElectraForMaskedLM"),
]


@pytest.mark.parametrize(("settings", "kind"), LOADED)
def test_transformers_load_the_same_function(settings: dict[str, Any], kind: str, tmp_path: Path) -> None:
    encoder, objective = parts(**settings)
    arrays = packed()
    checkpoint.save(encoder, objective.heads["mlm"], tmp_path)
    theirs, told = AutoModelForMaskedLM.from_pretrained(tmp_path, output_loading_info=True)
    assert type(theirs).__name__ == kind
    assert not any(told[name] for name in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    ours = float(objective(encoder, as_batch(arrays))[0]["mlm"].detach()) / 21
    assert ours == pytest.approx(float(theirs.eval()(**theirs_reads(arrays)).loss), abs=1e-5)


@pytest.mark.parametrize("settings", [*(settings for settings, _ in LOADED), {"norm": "pre", **ALBERT}])
@pytest.mark.parametrize("with_heads", [True, False])
def test_a_saved_encoder_loads_bit_for_bit(settings: dict[str, Any], with_heads: bool, tmp_path: Path) -> None:
    encoder, objective = parts(**settings)
    heads = objective.heads
    checkpoint.save(encoder, heads["mlm"] if with_heads else None, tmp_path, heads["sop"] if with_heads else None)
    other = small(**settings).build(VOCABULARY, seed=9)
    count = other.parameter_count()
    checkpoint.load(other, tmp_path)
    assert other.parameter_count() == count, "loading keeps weights shared"
    assert all(torch.equal(tensor, other.state_dict()[name]) for name, tensor in encoder.state_dict().items())


@pytest.mark.parametrize(
    ("saved", "loading"),
    [
        ({}, {"sharing": "all"}),
        ({"embedding": 16}, {"embedding": 16, "sharing": "attention"}),
        ({"embedding": 16}, {"embedding": 8}),
        ({}, {"embedding": 16}),
        ({**ALBERT, "groups": 2}, ALBERT),
    ],
)
def test_weights_of_another_sharing_are_refused(saved: Any, loading: Any, tmp_path: Path) -> None:
    checkpoint.save(parts(**saved)[0], None, tmp_path)
    with pytest.raises(UserError, match=r"model\.safetensors does not fit the model"):
        checkpoint.load(small(**loading).build(VOCABULARY, seed=0), tmp_path)


def test_depth_counts_shared_weights_where_they_are_used_first() -> None:
    encoder, _ = parts(**ALBERT, groups=2)
    depths = {name: encoder.depth_of(name) for name, _ in encoder.named_parameters()}
    assert {depth for name, depth in depths.items() if "embeddings" in name} == {0}
    assert {depth for name, depth in depths.items() if "layer." in name} == {1, 3}


def test_sharing_costs_as_many_operations_and_narrow_embeddings_fewer() -> None:
    def flops(*more: str) -> float:
        return train_flops(
            Run.of(compose(["model=bert_base", "model/position=learned", "input.length=512", *more])),
            30000,
            512.0,
            77.0,
        )

    layers = 512 * (2 * 12 * (4 * 768**2 + 2 * 768 * 3072) + 4 * 12 * 512 * 768)
    assert flops() == 3 * (layers + 77 * 2 * (768**2 + 768 * 30000))
    assert flops("model.sharing=all") == flops() == flops("model.embedding=768")
    head = 77 * 2 * (768 * 128 + 128 * 30000)
    assert flops("model.embedding=128", "model.sharing=all") == 3 * (layers + 512 * 2 * 128 * 768 + head)


def test_settings_that_change_nothing_do_not_rename_runs(arguments: list[str]) -> None:
    base = Run.of(compose(arguments)).identity.signature
    explicit = ["model.embedding=null", "model.sharing=none", "model.groups=1"]
    assert Run.of(compose([*arguments, *explicit])).identity.signature == base
    for change in (["model.embedding=16"], ["model.sharing=all"], ["model.sharing=ffn"]):
        assert Run.of(compose([*arguments, *change])).identity.signature != base


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_run_records_its_parameters(arguments: list[str], task_folder: Path, norm: str) -> None:
    task = ["task=sst2", f"tasks.sst2.path={task_folder}", "finetune.batch_size=16"]
    shape = ["model/position=learned", "model.embedding=16", "model.sharing=attention", f"model.norm={norm}"]
    cfg = compose([*arguments, *task, *shape, "objective=mlm_sop", "input=segment_pair", "input.pairs=order"])
    found = json.loads((run(cfg) / "result.json").read_text())
    embeddings = (150 + 512 + 2 + 2 + (norm == "pre")) * 16 + 17 * 128
    attention, ffn = 4 * 129 * 128 + 256, 129 * 512 + 513 * 128 + 256
    assert found["realised"]["parameters"] == embeddings + attention + 2 * ffn + (256 if norm == "pre" else 0)
    assert 0 <= found["metrics"]["sst2/accuracy"] <= 1


def test_published_sizes_compose() -> None:
    printed = {"base": 12, "large": 18, "xlarge": 60, "xxlarge": 235}
    for name, millions in printed.items():
        with torch.device("meta"):
            encoder = Encoder(build(compose([f"model=albert_{name}"]).model), WIDE)
        pooler = encoder.width * (encoder.width + 1)
        assert (encoder.parameter_count() + pooler) / 1e6 == pytest.approx(millions, rel=0.06), name


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (["model.sharing=all", "model.groups=3"], "model.groups=3 does not fit model.layers=2"),
        (["model.sharing=all", "model.groups=0"], "model.groups=0"),
        (["model.groups=2"], "model.groups=2 needs sharing"),
        (["model.sharing=embeddings"], "model.sharing=embeddings is unknown"),
        (["model.embedding=0"], "model.embedding=0 is out of bounds"),
    ],
)
def test_bad_input_is_one_line_before_any_step(
    arguments: list[str], bad: list[str], named: str, refused_run: Callable[..., str]
) -> None:
    assert named in refused_run(*arguments, *bad)
