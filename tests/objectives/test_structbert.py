"""StructBERT's objectives: the losses are those of its paper, a run of each arm ends in a record."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from transformers import AutoModelForMaskedLM, BertForMaskedLM

from paribus.commands.cli import main
from paribus.core.build import build
from paribus.core.config import compose
from paribus.models import checkpoint
from paribus.models.network import as_batch, initialize
from paribus.training.budget import planned
from paribus.training.description import Run
from paribus.training.run import run
from paribus.training.streams import training_examples

THREE = ["input=segment_pair", "input.pairs=three"]
BOTH = ["objective=structbert", *THREE]
ARMS = {
    "both": (BOTH, {"mlm", "sentence", "word_order"}),
    "no_word": (["objective=mlm_three", *THREE], {"mlm", "sentence"}),
    "no_sentence": (
        ["objective=mlm_nsp", "objective/shuffling=trigrams", "input=segment_pair"],
        {"mlm", "nsp", "word_order"},
    ),
    "alone": (["objective/shuffling=trigrams"], {"mlm", "word_order"}),
}


@pytest.mark.parametrize("arm", ARMS)
def test_a_run_of_each_arm(arguments: list[str], arm: str) -> None:
    overrides, heads = ARMS[arm]
    folder = run(compose([*arguments, *overrides, "trainer.log_every=1"]))
    found = json.loads((folder / "result.json").read_text())
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert found["status"] == "done"
    for line in (line for line in lines if "train/lr" in line):
        assert {key for key in line if key.endswith("_loss")} == {f"train/{head}_loss" for head in heads}
    own = {"sentence": {"sentence_accuracy"}, "nsp": {"nsp_accuracy", "sop_accuracy"}}
    expected = set[str]().union(*(names for head, names in own.items() if head in heads))
    assert {name for name in found["metrics"] if "mlm" not in name} == expected
    assert ("moved_rate" in found["realised"]) == ("word_order" in heads)
    assert ("random_rate" in found["realised"]) == ("sentence" in heads)
    assert AutoModelForMaskedLM.from_pretrained(folder / "model").config.hidden_size == 128


def objective_of(arguments: list[str], overrides: list[str]) -> tuple[Any, Any, Any]:
    cfg = compose([*arguments, *overrides, "model.dropout=0", "model.attention_dropout=0"])
    data = Run.of(cfg).data()
    encoder = build(cfg.model).build(data.vocabulary, 0)
    objective = build(cfg.objective).compose(encoder, encoder.vocabulary)
    initialize(objective, 0, 0.2)
    return encoder, objective, as_batch(training_examples(Run.of(cfg), data).batch(0, np.arange(8)))


def test_the_losses_are_means_over_their_own_places(arguments: list[str], tmp_path: Path) -> None:
    encoder, objective, batch = objective_of(arguments, BOTH)
    sums, counts = objective(encoder, batch)[0], batch["counts"]
    checkpoint.save(encoder, objective.heads["mlm"], tmp_path)
    theirs = BertForMaskedLM.from_pretrained(tmp_path).eval()
    mask = (torch.arange(batch["ids_BL"].shape[1]) < batch["length_B"][:, None]).long()
    for head, places, targets in (("mlm", "slot_P", "target_P"), ("word_order", "moved_P", "moved_target_P")):
        labels = torch.full_like(batch["ids_BL"], -100)
        labels.view(-1)[batch[places]] = batch[targets]
        output = theirs(input_ids=batch["ids_BL"], attention_mask=mask, token_type_ids=batch["part_BL"], labels=labels)
        assert float(sums[head].detach()) / counts[objective.denominators()[head]] == pytest.approx(
            float(output.loss.detach()), abs=1e-5
        )
    assert counts["moved"] > 0


def test_word_order_is_asked_of_the_masked_lm_head(arguments: list[str]) -> None:
    _, with_order, _ = objective_of(arguments, BOTH)
    _, without, _ = objective_of(arguments, ARMS["no_word"][0])
    own, other = dict(with_order.named_parameters()), dict(without.named_parameters())
    assert own.keys() == other.keys()
    assert all(torch.equal(own[name], other[name]) for name in own)
    assert own["heads.sentence.classifier.weight"].shape[0] == 3


def test_arms_without_disorder_keep_their_names_and_others_do_not(arguments: list[str]) -> None:
    plain, shuffled = (compose([*arguments, *extra]) for extra in ([], ["objective/shuffling=trigrams"]))
    nulled = compose([*arguments, "+objective.shuffling=null"])
    assert Run.of(plain).identity.signature == Run.of(nulled).identity.signature != Run.of(shuffled).identity.signature


def test_plan_and_record_count_what_is_out_of_order(arguments: list[str]) -> None:
    with_order, without = (compose([*arguments, *ARMS[arm][0]]) for arm in ("both", "no_word"))
    used, less = (json.loads((run(cfg) / "result.json").read_text())["budget"] for cfg in (with_order, without))
    assert used["input_tokens"] == less["input_tokens"]
    assert used["predicted_tokens"] > less["predicted_tokens"]
    assert used["flops"] > less["flops"]
    assert planned(Run.of(with_order))["flops"] == pytest.approx(used["flops"], rel=0.05)


def test_show_writes_the_original_of_words_out_of_order(arguments: list[str], tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    own = [text for text in arguments if not text.startswith("paths.runs")]
    assert main(["show", "n=6", f"out={out}", *own, *BOTH]) == 0
    for row in pq.read_table(out).to_pylist():
        assert row["pair_label"] in (0, 1, 2)
        for read, label, original in zip(row["input_ids"], row["labels"], row["original_ids"], strict=True):
            assert label == original or (label == -100 and read == original)


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (["objective=structbert"], "input.pairs=three"),
        (["objective=structbert", "input=segment_pair"], "set input.pairs=three"),
        (["objective/shuffling=trigrams", "objective.shuffling.share=0"], "objective.shuffling.share=0"),
        (["objective=mlm_nsp", *THREE], "set input.pairs=next"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], bad: list[str], named: str, refused_run: Callable[..., str]
) -> None:
    assert named in refused_run(*arguments, *bad)
