"""ELECTRA and the rows between it and BERT: losses of `transformers`, golden values, samples, what is shared."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits
from toy_training import VOCABULARY, assert_resumes, batch_of
from transformers import ElectraForMaskedLM, ElectraForPreTraining

from paribus.core.build import build
from paribus.core.config import compose
from paribus.corruption.views.replace import Replace
from paribus.finetuning.method import LayerwiseDecay
from paribus.models import checkpoint
from paribus.models.bert import Bert
from paribus.models.heads.vocabulary import ORIGINAL, CopyHead, MaskedLMHead, find_places, sum_copy_losses
from paribus.models.network import Outputs, initialize
from paribus.objectives.electra import Electra
from paribus.objectives.generated import GENERATOR, FromGenerator, put
from paribus.objectives.spec import Statistics
from paribus.sweeps.sweep import arm_overrides
from paribus.sweeps.sweep_file import load
from paribus.training.run import run

SPEC = Bert(2, 64, 2, 128, positions=40, dropout=0.0, attention_dropout=0.0, initializer_range=0.2)
ROWS = {
    "electra": {},
    "electra_15": {"over": "noised"},
    "replace_mlm": {"asks": "original", "over": "noised", "weight": 1.0},
    "all_tokens": {"asks": "original", "weight": 1.0},
}


def make(spec: Bert = SPEC, **settings: Any) -> tuple[Any, Any]:
    """A network and its objective."""
    network = spec.build(VOCABULARY, 3)
    return network, Electra(Replace(mask=0.85, random=0.0, keep=0.15), **settings).build(network, VOCABULARY, 7)


def batch(seed: int = 0, rows: int = 4) -> dict[str, Any]:
    """Rows of two lengths, with keys."""
    found = batch_of(seed, rows)
    length_B = torch.tensor([12 if row % 2 else 9 for row in range(rows)])
    keys = np.random.default_rng(seed).integers(-(2**62), 2**62, rows)
    found["counts"]["input_tokens"] = int(length_B.sum())
    return {**found, "length_B": length_B, "full": False, "row_key_B": torch.from_numpy(keys)}


def written(objective: FromGenerator, network: Any, given: dict[str, Any]) -> Tensor:
    """The ids that the network reads."""
    logits_PV = objective.fill.logits((objective.generator or network)(given), given).detach()
    return put(given["ids_BL"], given["slot_P"], objective.sample(logits_PV, given))


def test_the_golden_values() -> None:
    scores, labels = torch.tensor([-2.0, -1.0, 3.0, 0.0]), torch.tensor([0.0, 0.0, 1.0, 1.0])
    each = binary_cross_entropy_with_logits(scores, labels, reduction="none")
    assert each.tolist() == pytest.approx([0.126928, 0.313262, 0.048587, 0.693147], abs=1e-6)
    assert 50 * each.mean().item() == pytest.approx(14.774053, abs=1e-5)
    logits, gate = torch.tensor([[0.0, 1.0, 2.0, 0.0, -1.0]]), torch.logit(torch.tensor([0.7]))
    for original, loss in ((2, 0.130462), (1, 2.727717)):
        found = sum_copy_losses(logits, gate, torch.tensor([2]), torch.tensor([original]))
        assert found.item() == pytest.approx(loss, abs=1e-6)


def test_the_losses_are_those_of_transformers(tmp_path: Path) -> None:
    network, objective = make(replace(SPEC, embedding=32))
    given = batch()
    losses, _ = objective(network, given)
    checkpoint.save(objective.generator, objective.fill, tmp_path / "generator")
    theirs = ElectraForMaskedLM.from_pretrained(tmp_path / "generator").eval()
    mask_BL = torch.arange(12) < given["length_B"][:, None]
    label_BL = torch.full_like(given["ids_BL"], -100)
    label_BL.view(-1)[given["slot_P"]] = given["target_P"]
    found = theirs(given["ids_BL"], attention_mask=mask_BL, labels=label_BL)
    assert losses[GENERATOR].item() / len(given["slot_P"]) == pytest.approx(found.loss.item(), rel=1e-5)
    checkpoint.save(network, None, tmp_path / "network")
    judge = ElectraForPreTraining.from_pretrained(tmp_path / "network").eval()
    head = objective.heads["replaced"]
    judge.discriminator_predictions.dense.load_state_dict(head.dense.state_dict())
    judge.discriminator_predictions.dense_prediction.load_state_dict(head.score.state_dict())
    read_BL = written(objective, network, given)
    original_BL = put(given["ids_BL"], given["slot_P"], given["target_P"])
    said = judge(read_BL, attention_mask=mask_BL, labels=(read_BL != original_BL).long())
    assert losses["replaced"].item() / int(mask_BL.sum()) == pytest.approx(said.loss.item(), rel=1e-5)


@pytest.mark.parametrize("row", ROWS)
def test_each_row_reads_the_same_samples_and_has_its_own_loss(row: str) -> None:
    network, objective = make(**ROWS[row])
    given = batch()
    losses, _ = objective(network, given)
    own = objective.heads[objective_name(row)]
    read_BL = written(objective, network, given)
    filled = {**given, "ids_BL": read_BL, ORIGINAL: put(given["ids_BL"], given["slot_P"], given["target_P"])}
    places = find_places(given) if "noised" not in ROWS[row].values() else given["slot_P"]
    hidden_PD = network(filled).hidden_BLD.flatten(0, 1)[places]
    original_P, read_P = filled[ORIGINAL].flatten()[places], read_BL.flatten()[places]
    if row.startswith("electra"):
        score_P = own.score(torch.nn.functional.gelu(own.dense(hidden_PD)))[:, 0]
        wanted = binary_cross_entropy_with_logits(score_P, (read_P != original_P).float(), reduction="sum")
    elif row == "replace_mlm":
        wanted = torch.nn.functional.cross_entropy(own.scores(hidden_PD), original_P, reduction="sum")
    else:
        copy_P1 = own.gate(hidden_PD).sigmoid()
        share_PV = (1 - copy_P1) * own.scores(hidden_PD).softmax(-1)
        wanted = -share_PV.scatter_add(1, read_P[:, None], copy_P1).gather(1, original_P[:, None]).log().sum()
    assert losses[objective_name(row)].item() == pytest.approx(wanted.item(), rel=1e-5)
    counted = {"input_tokens": 42, "predicted": 12}
    assert objective.divisors(counted) == {GENERATOR: 12, objective_name(row): len(places)}


def objective_name(row: str) -> str:
    return "replaced" if row.startswith("electra") else "mlm"


def test_the_logits_of_the_copying_head_are_logarithms_of_probabilities() -> None:
    network = SPEC.build(VOCABULARY, 3)
    head, given = CopyHead(network), batch()
    with torch.no_grad():
        logits_PV = head.logits(network(given), given)
    assert torch.allclose(logits_PV.exp().sum(-1), torch.ones(len(logits_PV)), atol=1e-5)


def test_samples_follow_the_generator() -> None:
    _, objective = make()
    share_V = torch.softmax(torch.linspace(0, 4, 97), 0)
    rows, draws = 4000, 12
    given = batch(1, rows)
    found = objective.sample(share_V.log().expand(3 * rows, 97), given)
    rate_V = torch.bincount(found, minlength=97) / len(found)
    assert len(found) == draws // 4 * rows
    assert (rate_V - share_V).abs().max() < 5 * math.sqrt(0.06 / len(found))


def test_a_sample_depends_on_its_row_alone() -> None:
    network, objective = make()
    given = batch(rows=6)
    whole = written(objective, network, given)
    for rows in ([0, 1, 2], [5, 3], [4]):
        part = {name: given[name][rows] for name in ("ids_BL", "part_BL", "length_B", "row_key_B")} | {"full": False}
        at_P = [3 * row + n for row in rows for n in range(3)]
        part["target_P"] = given["target_P"][at_P]
        part["slot_P"] = given["slot_P"][at_P] % 12 + 12 * torch.arange(len(rows)).repeat_interleave(3)
        assert torch.equal(written(objective, network, part), whole[rows])
    again = written(objective, network, {**given, "row_key_B": given["row_key_B"] + 1})
    assert not torch.equal(again, whole)


def test_a_correct_sample_counts_as_original_unless_it_is_forbidden() -> None:
    given = batch(rows=8)
    network, sure = make()
    with torch.no_grad():
        sure.fill.bias[given["target_P"][0]] = 1e4
    read_BL = written(sure, network, given)
    assert read_BL.flatten()[given["slot_P"][0]] == given["target_P"][0]
    losses, _ = sure(network, given)
    assert torch.isfinite(losses["replaced"])
    _, never = make(disallow_correct=True)
    never.load_state_dict(sure.state_dict())
    found_P = written(never, network, given).flatten()[given["slot_P"]]
    assert (found_P != given["target_P"]).all(), "the share of replaced tokens is that of noised ones"


@pytest.mark.parametrize("row", ROWS)
def test_no_gradient_passes_a_sample(row: str) -> None:
    network, objective = make(**ROWS[row])
    losses, _ = objective(network, batch())
    losses[objective_name(row)].backward()
    shared = {id(parameter) for parameter in network.parameters()}
    own = [p for p in (*objective.generator.parameters(), *objective.fill.parameters()) if id(p) not in shared]
    assert own
    assert all(parameter.grad is None for parameter in own)
    assert network.table_VD.grad is not None, "but through the embeddings that both read"


def test_what_is_tied() -> None:
    def count(tie: str) -> int:
        network, objective = make(replace(SPEC, intermediate=256), generator=1.0, tie=tie)
        both = torch.nn.ModuleList([network, objective])
        return sum(parameter.numel() for parameter in both.parameters())

    network, _ = make(replace(SPEC, intermediate=256))
    tables = sum(p.numel() for p in network.backbone.embeddings.parameters())
    assert count("none") - count("embeddings") == tables
    assert count("none") - count("all") == network.parameter_count()
    _, small = make()
    assert small.generator.width == 16
    assert small.generator.backbone.embeddings.word_embeddings.weight is not network.table_VD
    assert torch.equal(small.generator.table_VD, network.table_VD), "one set of initial weights for all arms"


def test_embeddings_that_are_shared_without_the_network_s_gradient() -> None:
    """DeBERTaV3, arXiv 2111.09543, section 3.3: E_D = stop(E_G) + E_delta, and E_delta begins at 0."""
    network, objective = make(tie="gdes")
    start_VD = network.table_VD.detach().clone()
    tables = ("word_embeddings", "position_embeddings")
    with objective.while_training(network):
        bases = [getattr(objective.generator.backbone.embeddings, name).weight for name in tables]
        deltas = [getattr(network.backbone.embeddings, name).parametrizations.weight.original for name in tables]
        assert torch.equal(bases[0], start_VD)
        assert torch.equal(network.table_VD, start_VD)
        assert not any(delta.any() for delta in deltas)
        losses, _ = objective(network, batch())
        losses["replaced"].backward(retain_graph=True)
        assert all(base.grad is None for base in bases)
        assert all(delta.grad.any() for delta in deltas)
        parameters = [*network.parameters(), *objective.parameters()]
        assert {id(each) for each in (*bases, *deltas)} <= {id(parameter) for parameter in parameters}
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        sum(losses.values()).backward()
        optimizer.step()
        assert all(base.grad.any() for base in bases)
        sums = [(base + delta).detach().clone() for base, delta in zip(bases, deltas, strict=True)]
    assert not torch.equal(network.table_VD, start_VD)
    assert all(
        torch.equal(getattr(network.backbone.embeddings, n).weight, e) for n, e in zip(tables, sums, strict=True)
    )
    assert not [name for name, _ in network.named_parameters() if "parametrizations" in name]


def test_a_generator_learns_under_gdes_as_if_it_were_alone() -> None:
    found: list[Tensor] = []
    for weight in (1.0, 50.0):
        network, objective = make(tie="gdes", weight=weight)
        with objective.while_training(network):
            optimizer = torch.optim.AdamW([*network.parameters(), *objective.parameters()], lr=1e-2)
            for step in range(2):
                losses, _ = objective(network, batch(step))
                sum(objective.weights[name] * loss for name, loss in losses.items()).backward()
                optimizer.step()
                optimizer.zero_grad()
        found.append(objective.generator.table_VD.detach())
    assert torch.equal(*found)


@pytest.mark.parametrize("tie", ["embeddings", "all", "gdes"])
def test_a_resumed_training_has_the_same_bits(tie: str, tmp_path: Path) -> None:
    settings = {"generator": 1.0 if tie == "all" else 0.25, "tie": tie}
    objective = Electra(Replace(mask=0.85, random=0.0, keep=0.15), **settings)
    assert_resumes(SPEC, objective, [[batch(n)] for n in range(4)], tmp_path / "cut.ckpt")


@pytest.mark.parametrize(
    "name", ["table1", "table5", "weight_tying", "generator_size", "disc_weight", "two_stage", "forms"]
)
def test_the_published_setting_is_that_of_the_authors_code(name: str) -> None:
    sweep = load(f"electra_{name}")
    for arm in sweep.arms:
        found = compose(arm_overrides(sweep, "paper", arm))
        for optimizer in (found.optimizer, found.finetune.optimizer):
            assert (list(optimizer.betas), optimizer.eps) == ([0.9, 0.999], 1e-6)
            assert (optimizer.weight_decay, optimizer.bias_correction) == (0.01, False)
        assert (found.trainer.clip, found.lr_schedule.rise, found.finetune.lr_schedule.rise) == (
            1.0,
            "product",
            "product",
        )
        tuned = build(found.finetune.method), found.finetune.optimizer.lr, found.finetune.lr_schedule.warmup
        assert tuned == (LayerwiseDecay(0.8), 1e-4, 0.1)


def test_the_cost_of_both_networks() -> None:
    counts = {"input_tokens": 1000.0, "predicted": 150.0}
    seen = Statistics(counts, 64.0, 97)
    small = Bert(2, 16, 1, 64, positions=40, embedding=64)
    both = SPEC.forward_flops(1000.0, 64.0) + small.forward_flops(1000.0, 64.0)
    heads = 2.0 * (1000.0 * (64 * 64 + 64) + 150.0 * (16 * 64 + 64 * 97))
    view = Replace(mask=0.85, random=0.0, keep=0.15)
    assert Electra(view).flops(seen, SPEC) == pytest.approx(3.0 * (both + heads))
    everywhere = Electra(view, asks="original", weight=1.0)
    more = 2.0 * 1000.0 * (64 * 64 + 64 * 97 - 64 * 64 - 64)
    assert everywhere.flops(seen, SPEC) == pytest.approx(3.0 * (both + heads + more))
    alone = Electra(view, generator=None, tie="none", over="noised").flops(seen, SPEC)
    assert alone == pytest.approx(3.0 * (SPEC.forward_flops(1000.0, 64.0) + 2.0 * 150.0 * (64 * 64 + 64)))


def test_random_tokens_are_replaced_ones_without_a_generator() -> None:
    network = SPEC.build(VOCABULARY, 3)
    objective = Electra(Replace(mask=0.0, random=1.0, keep=0.0), generator=None, tie="none")
    made, given = objective.build(network, VOCABULARY, 7), batch()
    losses, _ = made(network, given)
    assert losses.keys() == {"replaced"}
    assert not objective.collator.row_keys
    head: Any = made.heads["replaced"]
    original_BL = put(given["ids_BL"], given["slot_P"], given["target_P"])
    wanted = head(Outputs(network(given).hidden_BLD), {**given, ORIGINAL: original_BL})
    assert losses["replaced"].item() == pytest.approx(wanted.item(), rel=1e-6)


@pytest.mark.parametrize("row", [*ROWS, "unigram", "gdes"])
def test_runs_of_all_rows(row: str, arguments: list[str], task_folder: Path) -> None:
    further = {"unigram": {"generator": "null", "tie": "none"}, "gdes": {"tie": "gdes"}}
    settings = further.get(row) or ROWS[row]
    chosen = [f"objective.{key}={value}" for key, value in settings.items()]
    if row == "unigram":
        chosen += [f"objective.view.{key}" for key in ("mask=0", "random=1", "keep=0", "draw=unigram")]
    task = ["task=sst2", f"tasks.sst2.path={task_folder}"]
    folder = run(compose([*arguments, "objective=electra", *chosen, *task]))
    found = json.loads((folder / "result.json").read_text())
    assert found["status"] == "done"
    assert ("mlm_loss" in found["metrics"]) is (row in ("replace_mlm", "all_tokens"))
    assert 0 <= found["metrics"]["sst2/accuracy"] <= 1
    losses = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert any(name.endswith("generator_loss") for line in losses for name in line) is (row != "unigram")


SECOND = "stages.second.objective"
TWO_STAGES = [
    *("objective=mlm", "objective/view=electra", "trainer.max_steps=3", f"+objective@{SECOND}=electra"),
    *(f"{SECOND}.generator=1.0", f"{SECOND}.tie=none", f"{SECOND}.joint=false"),
]


def test_a_generator_that_was_trained_before_stays_as_it_was(tmp_path: Path) -> None:
    first, head = SPEC.build(VOCABULARY, 5), MaskedLMHead(SPEC.build(VOCABULARY, 5))
    initialize(head, 9, 0.2)
    checkpoint.save(first, head, tmp_path)
    network, objective = make(generator=1.0, tie="none", joint=False)
    objective.take_over(tmp_path)
    theirs = first.state_dict()
    assert all(torch.equal(theirs[name], own) for name, own in objective.generator.state_dict().items())
    assert torch.equal(objective.fill.bias, head.bias)
    losses, _ = objective(network, batch())
    assert losses.keys() == {"replaced"} == objective.denominators().keys()
    losses["replaced"].backward()
    frozen = [*objective.generator.parameters(), *objective.fill.parameters()]
    assert all(parameter.grad is None and not parameter.requires_grad for parameter in frozen)
    assert all(parameter.requires_grad for parameter in objective.heads.parameters())


def test_a_generator_that_does_not_learn_has_no_backward_pass() -> None:
    seen = Statistics({"input_tokens": 1000.0, "predicted": 150.0}, 64.0, 97)
    view = Replace(mask=0.85, random=0.0, keep=0.15)
    network = SPEC.forward_flops(1000.0, 64.0) + 2.0 * 1000.0 * (64 * 64 + 64)
    generator = SPEC.forward_flops(1000.0, 64.0) + 2.0 * 150.0 * (64 * 64 + 64 * 97)
    found = Electra(view, generator=1.0, tie="none", joint=False).flops(seen, SPEC)
    assert found == pytest.approx(3.0 * network + generator)


def test_a_run_of_two_stages_starts_from_the_generator(arguments: list[str]) -> None:
    folder = run(compose([*arguments, *TWO_STAGES]))
    record = json.loads((folder / "result.json").read_text())
    assert [part["stage"] for part in record["stages"]] == ["pretraining", "second"]
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert any(name.endswith("replaced_loss") for line in lines for name in line)
    assert not any("generator" in name for line in lines for name in line)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["objective.joint=false"], "set objective.generator=1.0 and objective.tie=none"),
        (["objective.joint=false", "objective.generator=1.0", "objective.tie=none"], "no stage before it"),
        (["objective.generator=2.0"], "wider than the embeddings"),
        (["objective.tie=all"], "set objective.generator=1.0"),
        (["objective.tie=half"], "objective.tie=half is unknown"),
        (["objective.asks=order"], "objective.asks=order is unknown"),
        (["objective.over=some"], "objective.over=some is unknown"),
        (["objective.weight=0"], "objective.weight=0"),
        (["objective.temperature=-1"], "objective.temperature=-1"),
        (["objective.generator=0"], "objective.generator=0"),
        (["objective.generator=null"], "nothing to tie"),
        (["model.attention=left"], "model.attention"),
    ],
)
def test_what_does_not_fit_is_told_before_compute(
    wrong: list[str], said: str, arguments: list[str], refused_run: Callable[..., str]
) -> None:
    assert said in refused_run(*arguments, "objective=electra", *wrong)


def test_weights_that_are_sums_are_not_saved_on_the_way(
    arguments: list[str], task_folder: Path, refused_run: Callable[..., str]
) -> None:
    asked = ["task=sst2", f"tasks.sst2.path={task_folder}", "evaluation.task_points=2"]
    said = refused_run(*arguments, "objective=electra", "objective.tie=gdes", *asked)
    assert "evaluation.task_points=2, but objective.tie computes weights" in said
