"""Runs on pairs: from text to record, and what is refused before compute."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from paribus.core.build import build
from paribus.core.config import compose
from paribus.models import checkpoint
from paribus.tasks.rows import encode
from paribus.training.budget import planned
from paribus.training.description import Run
from paribus.training.finetuner import finetuner
from paribus.training.run import run
from paribus.training.streams import training_examples

NSP = ["objective=mlm_nsp", "input=segment_pair"]
SOP = ["objective=mlm_sop", "input=segment_pair", "input.pairs=order"]
SINGLE = ["objective=mlm_nsp", "input=sentence_pair", "batch=tokens"]


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def train_lines(folder: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if "train/lr" in line]


@pytest.mark.parametrize(("arm", "head"), [(NSP, "nsp"), (SOP, "sop"), (SINGLE, "nsp")])
def test_a_run_on_pairs(arguments: list[str], arm: list[str], head: str) -> None:
    folder = run(compose([*arguments, *arm, "trainer.log_every=1"]))
    found = record(folder)
    assert found["status"] == "done"
    assert all({"train/mlm_loss", f"train/{head}_loss"} <= set(line) for line in train_lines(folder))
    for name in ("nsp_accuracy", "sop_accuracy"):
        assert 0 <= found["metrics"][name] <= 1
        assert 0.5 <= found["baselines"][name]["majority"] <= 1
    realised = found["realised"]
    assert 0.3 < realised["label_rate"] < 0.8
    assert 0 <= realised["padding_share"] < 1
    assert ("dropped_chunks" in realised) == (head == "sop")
    names = load_file(folder / "model" / "model.safetensors")
    assert {"bert.pooler.dense.weight", "cls.seq_relationship.weight", "cls.predictions.bias"} <= set(names)


def test_pairs_without_their_objective_are_an_arm(arguments: list[str]) -> None:
    found = record(run(compose([*arguments, "input=segment_pair"])))
    assert found["status"] == "done"
    assert "label_rate" in found["realised"]
    assert not {"nsp_accuracy", "sop_accuracy"} & set(found["metrics"])


def test_arms_with_and_without_the_objective_read_the_same_pairs(arguments: list[str]) -> None:
    with_nsp, without = (compose([*arguments, "input=segment_pair", f"objective={o}"]) for o in ("mlm_nsp", "mlm"))
    batches = [training_examples(Run.of(cfg), Run.of(cfg).data()).batch(1, [0, 5, 9]) for cfg in (with_nsp, without)]
    assert all((batches[0][name] == batches[1][name]).all() for name in batches[0] if name != "counts")


def test_pairs_are_redrawn_with_the_masks(arguments: list[str]) -> None:
    for schedule, same in (("static", True), ("dynamic", False)):
        cfg = compose([*arguments, *NSP, f"masking/schedule={schedule}"])
        examples = training_examples(Run.of(cfg), Run.of(cfg).data())
        assert (examples.lengths(0).tolist() == examples.lengths(1).tolist()) is same


def test_budgets_of_redrawn_pairs_are_planned_as_they_are_used(arguments: list[str]) -> None:
    cfg = compose([*arguments, *SINGLE, "trainer.max_steps=null", "trainer.max_epochs=2.5", "batch.size=64"])
    plan = planned(Run.of(cfg))
    assert plan["epochs"] == pytest.approx(2.5, abs=0.3)
    used = record(run(cfg))["budget"]
    assert (used["input_tokens"], used["sequences"], used["steps"]) == (
        plan["tokens"],
        plan["sequences"],
        plan["steps"],
    )


def test_workers_do_not_change_pairs_that_are_redrawn(arguments: list[str], tmp_path: Path) -> None:
    extra = [*NSP, "batch.size=64", "trainer.max_steps=null", "trainer.max_epochs=2.2"]
    alone, spread = (
        run(compose([*arguments, *extra, f"profile.workers={n}", f"run_dir={tmp_path / str(n)}"])) for n in (0, 2)
    )
    first, second = (load_file(folder / "model" / "model.safetensors") for folder in (alone, spread))
    assert all((first[name] == second[name]).all() for name in first)


def test_what_is_sampled_is_part_of_a_run_s_meaning(arguments: list[str]) -> None:
    base = Run.of(compose([*arguments, *NSP])).identity.signature
    for change in (["input.short_seq_prob=0"], ["objective=mlm"], ["masking/schedule=static"], ["input=sentence_pair"]):
        assert Run.of(compose([*arguments, *NSP, *change])).identity.signature != base


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (["objective=mlm_nsp"], "input=segment_pair"),
        (["objective=mlm_sop", "input=doc_sentences"], "input.pairs=order"),
        (["objective=mlm_sop", "input=segment_pair"], "set input.pairs=order"),
        ([*NSP, "input.pairs=order"], "set input.pairs=next"),
        ([*NSP, "input.pairs=previous"], "input.pairs=previous"),
        ([*NSP, "input.short_seq_prob=2"], "input.short_seq_prob=2"),
        ([*NSP, "input.length=4"], "input.length=4"),
    ],
)
def test_bad_input_is_one_line_before_any_step(
    arguments: list[str], bad: list[str], named: str, refused_run: Callable[..., str]
) -> None:
    assert named in refused_run(*arguments, *bad)


def test_a_text_without_documents_is_refused(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], refusal: Callable[..., str]
) -> None:
    sentences = " ".join(f"The {n} sailors crossed the river before the winter." for n in range(300))
    (tmp_path / "train.txt").write_text(sentences + "\n")
    (tmp_path / "validation.txt").write_text(sentences[:4000] + "\n")
    assert "another document, but the text has only 1" in refusal(
        "train", *arguments, *NSP, f"corpus.path={tmp_path}", "tokenizer.vocab_size=80"
    )
    found = run(compose([*arguments, *SOP, f"corpus.path={tmp_path}", "tokenizer.vocab_size=80"]))
    assert "sop_accuracy" in record(found)["metrics"]
    assert "nsp_accuracy" not in record(found)["metrics"]
    assert "no nsp_accuracy" in capsys.readouterr().err


@pytest.mark.parametrize(("parted", "said"), [(False, False), (True, True)])
def test_blank_lines_inside_documents_are_told(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], parted: bool, said: bool
) -> None:
    for name, stories in (("train", 40), ("validation", 10)):
        lines = [[f"Sailor {n} of ship {at} slept." for n in range(9)] for at in range(stories)]
        inner = "\n\n" if parted else "\n"
        (tmp_path / f"{name}.txt").write_text("\n\n".join([inner.join(some) for some in lines] + ["One. Two. Three."]))
    run(compose([*arguments, *NSP, f"corpus.path={tmp_path}", "tokenizer.vocab_size=80"]))
    assert ("do blank lines separate documents only" in capsys.readouterr().err) is said


@pytest.fixture
def tuned(arguments: list[str], task_folder: Path) -> list[str]:
    return [*arguments, "task=sst2", f"tasks.sst2.path={task_folder}", "finetune.head.pooler=pretrained"]


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_fine_tuning_starts_from_the_pooler_of_the_pairs(tuned: list[str], norm: str) -> None:
    cfg = compose([*tuned, *NSP, f"model.norm={norm}"])
    folder = run(cfg)
    weights, data = load_file(folder / "model" / "model.safetensors"), Run.of(cfg).data()
    saved = next(tensor for name, tensor in weights.items() if name.endswith("pooler.dense.weight"))
    encoder, task = build(cfg.model).build(data.vocabulary, 0), build(cfg.tasks.sst2)
    encoded = encode(task.examples(Path(cfg.paths.cache))["train"], data.tokenizer, data.vocabulary, 32)
    pooler = checkpoint.load_pooler(encoder, folder / "model")
    for given, same in ((pooler, True), (None, False)):
        learner, _ = finetuner(Run.of(cfg), encoder, encoded, task.task_type, 0, given)
        head: Any = learner.objective.heads["task"]
        assert bool((head.pooler.weight.detach().numpy() == saved).all()) is same


def test_the_pooler_of_fine_tuning_is_part_of_a_run_s_meaning(tuned: list[str]) -> None:
    fresh, pretrained = (compose([*tuned, *NSP, f"finetune.head.pooler={kind}"]) for kind in ("fresh", "pretrained"))
    assert Run.of(fresh).identity.pretrain == Run.of(pretrained).identity.pretrain
    assert Run.of(fresh).identity.signature != Run.of(pretrained).identity.signature


@pytest.mark.parametrize(
    ("bad", "named"),
    [([], "neither the objective nor the model has a pooler"), ([*NSP, "finetune.head.pooler=old"], "pooler=old")],
)
def test_a_pooler_that_is_not_there_is_refused(
    tuned: list[str], bad: list[str], named: str, refused_run: Callable[..., str]
) -> None:
    assert named in refused_run(*tuned, *bad)
