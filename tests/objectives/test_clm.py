"""Left-to-right language modeling: nothing to the right is seen, the loss is that of `transformers`, runs end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from fake_store import FakeVocabulary, examples_of, random_store, store_of
from left_to_right import LENGTH, changed
from transformers import AutoModelForCausalLM

from paribus.commands.cli import main
from paribus.core.config import compose
from paribus.corruption.collators.encoder import CausalCollator
from paribus.corruption.masking.whole_row import NoNoise
from paribus.corruption.views.replace import Unchanged
from paribus.data.formats.full_sentences import FullSentences
from paribus.data.formats.pairs import SegmentPair
from paribus.models import checkpoint
from paribus.models.bert import Bert
from paribus.models.encoder import Encoder
from paribus.models.heads.rows import ClassificationHead
from paribus.models.heads.wrappers import OnBiLSTM
from paribus.models.network import as_batch, initialize
from paribus.objectives.mlm import CausalLM
from paribus.objectives.objective import Objective
from paribus.tasks.docs.package import DocsPackage
from paribus.tasks.rows import FramedRows
from paribus.training.budget import planned
from paribus.training.description import Run
from paribus.training.finetuner import finetuner
from paribus.training.run import run
from paribus.training.steps import task_batch

CLM = ["objective=clm", "masking=none", "model.attention=left"]


def parts(norm: str, attention: str = "left") -> tuple[Encoder, Objective]:
    spec = Bert(2, 32, 2, 64, 64, 0.0, 0.0, norm=norm, attention=attention, initializer_range=0.2)
    encoder = spec.build(FakeVocabulary(), seed=3)  # type: ignore[arg-type]
    objective = CausalLM(Unchanged()).compose(encoder, encoder.vocabulary)
    initialize(objective, 3, 0.2)
    return encoder.eval(), objective.eval()


def arrays(rows: int, full: bool = False) -> dict[str, Any]:
    """Segment pairs of unequal lengths, or single sentences that fill the row."""
    store, input_format = random_store(300, mean=7), SegmentPair(LENGTH, short_seq_prob=0.5)
    if full:
        store, input_format = store_of([[LENGTH - 2] * 20]), FullSentences(LENGTH)
    examples = examples_of(store, LENGTH, masking=NoNoise(), input_format=input_format)
    return CausalCollator().pack(examples.views(0, np.arange(rows)), FakeVocabulary())


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def test_each_token_of_the_text_is_a_target_one_place_to_the_right() -> None:
    packed = arrays(6)
    ids_P, width = packed["ids_BL"].reshape(-1), packed["ids_BL"].shape[1]
    text_P = np.flatnonzero(ids_P >= 5)
    assert packed["slot_P"].tolist() == (text_P - 1).tolist()
    assert packed["target_P"].tolist() == ids_P[text_P].tolist()
    assert (packed["slot_P"] // width == text_P // width).all()
    assert packed["counts"]["predicted"] == packed["counts"]["raw_tokens"] == len(text_P)
    assert packed["counts"]["noise"] == packed["counts"]["spans"] == 0


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("padded", [True, False])
def test_loss_equals_transformers(norm: str, padded: bool, tmp_path: Path) -> None:
    encoder, objective = parts(norm)
    packed = arrays(7, full=not padded)
    batch = as_batch(packed)
    assert batch["full"] is not padded
    ours = objective(encoder, batch)[0]["clm"] / batch["counts"]["predicted"]
    checkpoint.save(encoder, objective.heads["clm"], tmp_path)
    theirs, told = AutoModelForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(told[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    labels = torch.where(batch["ids_BL"] >= 5, batch["ids_BL"], -100)
    mask = torch.arange(packed["ids_BL"].shape[1]) < batch["length_B"][:, None]
    output = theirs.eval()(
        input_ids=batch["ids_BL"], attention_mask=mask.long(), token_type_ids=batch["part_BL"], labels=labels
    )
    assert float(ours.detach()) == pytest.approx(float(output.loss), abs=1e-5)


def test_a_left_only_model_with_narrow_embeddings_is_saved_too(tmp_path: Path) -> None:
    spec = Bert(2, 32, 2, 64, 64, 0.0, 0.0, attention="left", embedding=16, sharing="all", initializer_range=0.2)
    encoder = spec.build(FakeVocabulary(), seed=3)  # type: ignore[arg-type]
    objective = CausalLM(Unchanged()).compose(encoder, encoder.vocabulary)
    initialize(objective, 3, 0.2)
    batch = as_batch(arrays(3, full=True))
    checkpoint.save(encoder.eval(), objective.heads["clm"], tmp_path)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    labels = torch.where(batch["ids_BL"] >= 5, batch["ids_BL"], -100)
    output = theirs(input_ids=batch["ids_BL"], token_type_ids=batch["part_BL"], labels=labels)
    ours = objective(encoder, batch)[0]["clm"] / batch["counts"]["predicted"]
    assert float(ours.detach()) == pytest.approx(float(output.loss.detach()), abs=1e-5)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("full", [False, True])
def test_a_later_token_leaves_earlier_states_unchanged(norm: str, full: bool) -> None:
    encoder, _ = parts(norm)
    batch, at = as_batch(arrays(6, full)), 4
    states = [encoder(b).hidden_BLD for b in (batch, changed(batch, at))]
    assert torch.equal(states[0][:, :at], states[1][:, :at])
    assert (states[0][:, at:] - states[1][:, at:]).abs().amax((0, 2)).min() > 1e-4
    both = parts(norm, "full")[0]
    seen = [both(b).hidden_BLD[:, :at] for b in (batch, changed(batch, at))]
    assert not torch.allclose(*seen, atol=1e-4)


def fine_tuned(bilstm: bool, attention: str = "left") -> tuple[Any, dict[str, Any]]:
    """A learner as fine-tuning makes it, and a batch of padded rows."""
    cfg = compose(
        [
            "scale=test",
            f"finetune/head={'bilstm' if bilstm else 'classifier'}",
            f"model.attention={attention}",
            "finetune.batch_size=3",
        ]
    )
    task = DocsPackage("t", ["a", "b"])
    length_N = np.array([9, 12, 20])
    ids_T = np.random.default_rng(0).integers(5, 900, length_N.sum()).astype(np.int32)
    start_N = np.cumsum(length_N) - length_N
    encoded = FramedRows(ids_T, np.zeros(len(ids_T), np.uint8), start_N, length_N, np.array([0, 1, 1]), 0)
    learner, _ = finetuner(Run.of(cfg), parts("pre", attention)[0], encoded, task.task_type, 7)
    return learner.eval(), task_batch(encoded, np.arange(3))


@pytest.mark.parametrize("bilstm", [False, True])
def test_fine_tuning_keeps_the_left_only_attention_and_reads_the_end_of_a_row(bilstm: bool) -> None:
    learner, batch = fine_tuned(bilstm)
    states = [learner.encoder(b).hidden_BLD for b in (batch, changed(batch, 5))]
    assert torch.equal(states[0][:, :5], states[1][:, :5])
    outputs = learner.encoder(batch)
    assert torch.equal(outputs.row_BD, outputs.hidden_BLD[torch.arange(3), batch["length_B"] - 1])
    head = learner.objective.heads["task"]
    logits = [head.logits(learner.encoder(b), b) for b in (batch, changed(batch, 5))]
    assert (logits[0] - logits[1]).abs().max() > 1e-6
    assert learner.objective(learner.encoder, batch)[0]["task"] > 0


@pytest.mark.parametrize("bilstm", [False, True])
@pytest.mark.parametrize("attention", ["full", "left"])
def test_padding_changes_no_logit(bilstm: bool, attention: str) -> None:
    learner, batch = fine_tuned(bilstm, attention)
    head = learner.objective.heads["task"]
    whole = head.logits(learner.encoder(batch), batch)
    for row, length in enumerate(batch["length_B"].tolist()):
        alone = {
            **{name: batch[name][row : row + 1, :length] for name in ("ids_BL", "part_BL")},
            "length_B": batch["length_B"][row : row + 1],
            "full": True,
        }
        assert torch.allclose(head.logits(learner.encoder(alone), alone)[0], whole[row], atol=1e-6)


def test_a_model_that_sees_both_sides_is_read_at_its_first_token() -> None:
    learner, batch = fine_tuned(False, "full")
    outputs = learner.encoder(batch)
    assert torch.equal(outputs.row_BD, outputs.hidden_BLD[:, 0])


def test_the_bilstm_reads_both_ways_and_leaves_the_classifier_s_weights_alone() -> None:
    (plain, _), (other, batch) = fine_tuned(False), fine_tuned(True)
    head = other.objective.heads["task"]
    assert isinstance(head, OnBiLSTM)
    assert isinstance(head.head, ClassificationHead)
    same = zip(plain.objective.heads["task"].parameters(), head.head.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in same)
    outputs = other.encoder(batch)
    read = head.read(outputs, batch)
    forward_BLH, backward_BLH = read.hidden_BLD.chunk(2, -1)
    ends = (forward_BLH[torch.arange(3), batch["length_B"] - 1], backward_BLH[:, 0])
    assert torch.equal(read.row_BD, torch.cat(ends, -1))
    assert 0.1 < read.hidden_BLD[:, :9].std() < 1
    with torch.autocast("cpu", torch.bfloat16):
        assert head.read(outputs, batch).hidden_BLD.dtype == torch.float32


def test_a_run_is_measured_on_all_of_the_text(arguments: list[str], task_folder: Path) -> None:
    task = ["task=sst2", f"tasks.sst2.path={task_folder}", "finetune.batch_size=8"]
    cfg = compose([*arguments, *CLM, *task, "input=segment_pair", "trainer.log_every=1"])
    found = record(run(cfg))
    assert found["status"] == "done"
    assert {"clm_loss", "clm_perplexity", "clm_accuracy"} <= set(found["metrics"])
    assert not any(name.startswith("mlm_") for name in [*found["metrics"], *found["baselines"]])
    assert 0 < found["baselines"]["clm_loss"]["unigram"] < found["metrics"]["clm_loss"] + 1
    assert found["realised"]["masking_rate"] == pytest.approx(1, abs=0.01)
    assert found["realised"]["corruption_rate"] == found["realised"]["mask"] == found["realised"]["random"] == 0
    assert found["budget"]["flops"] == pytest.approx(planned(Run.of(cfg))["flops"], rel=0.05)
    bilstm = run(compose([*arguments, *CLM, *task, "input=segment_pair", "finetune/head=bilstm"]))
    assert record(bilstm)["pretrain_signature"] == found["pretrain_signature"]
    assert record(bilstm)["signature"] != found["signature"]
    assert record(bilstm)["metrics"]["clm_loss"] == found["metrics"]["clm_loss"]


def test_arms_of_table_5_read_the_same_pairs(arguments: list[str]) -> None:
    one, other = (compose([*arguments, "input=segment_pair", *extra]) for extra in ([], CLM))
    plans = [planned(Run.of(cfg)) for cfg in (one, other)]
    assert all(plans[0][key] == plans[1][key] for key in ("tokens", "sequences", "steps"))
    assert Run.of(one).data().fingerprint == Run.of(other).data().fingerprint


def test_settings_that_change_nothing_rename_nothing(arguments: list[str], task_folder: Path) -> None:
    base = [*arguments, "task=sst2", f"tasks.sst2.path={task_folder}"]
    cfg, older = compose(base), compose(base)
    del older.masking.predict  # a setting that came later, at its unset value
    assert Run.of(cfg).identity.signature == Run.of(older).identity.signature
    assert Run.of(compose([*base, "finetune/head=bilstm"])).identity.signature != Run.of(cfg).identity.signature
    assert Run.of(compose([*base, "model.attention=left"])).identity.pretrain != Run.of(cfg).identity.pretrain


def test_a_left_only_model_costs_less() -> None:
    sizes = (2, 32, 2, 64)
    full, left = Bert(*sizes).forward_flops(100, 50), Bert(*sizes, attention="left").forward_flops(100, 50)
    assert full - left == 100 * 4 * 2 * 32 * (50 - 25.5)


def test_show_labels_every_token(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "rows.parquet"
    assert main(["show", *arguments, *CLM, "n=5", f"out={out}"]) == 0
    printed = capsys.readouterr()
    report = json.loads(printed.out)
    assert report["masking_rate"] == pytest.approx(1, abs=0.01)
    assert "predicted from those to its left" in printed.err
    assert "^(" not in printed.err  # no word is out of order
    specials = set(report["special_tokens"].values())
    for row in pq.read_table(out).to_pylist():
        assert row["input_ids"] == row["original_ids"]
        assert row["labels"] == [-100 if token in specials else token for token in row["original_ids"]]


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (["objective=clm"], "model.attention=full"),
        (["objective=clm", "model.attention=left"], "set masking=none"),
        (["masking=none"], "masking=none"),
        (["model.attention=up"], "model.attention=up"),
        ([*CLM, "masking.rate=0.3"], "masking.rate"),
        ([*CLM, "objective=mlm_nsp", "input=segment_pair"], "masking=none"),
    ],
)
def test_what_cannot_be_is_one_line_before_any_step(
    arguments: list[str], bad: list[str], named: str, refused_run: Callable[..., str]
) -> None:
    assert named in refused_run(*arguments, *bad)
