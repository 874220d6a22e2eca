"""The probability of each right answer: exact, in the examples' order, kept beside the record and across restarts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from text_to_text import T5
from torch.nn.functional import log_softmax

from paribus.core.build import build
from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.models.t5 import ARCHITECTURES
from paribus.runs.folder import GOLD
from paribus.runs.gold import Gold, describe_gold, hash_answers, read_gold, write_gold
from paribus.runs.record import read_record
from paribus.runs.store import keep
from paribus.tasks.examples import Example
from paribus.tasks.types.classification import Classification
from paribus.training.description import Run
from paribus.training.finetune import DONE, add_seconds
from paribus.training.run import run
from paribus.training.steps import task_batch


@pytest.fixture
def tuned(arguments: list[str], task_folder: Path) -> list[str]:
    """Overrides of a run of seconds with two fine-tunings on a task of two labels."""
    return [*arguments, "task=sst2", f"tasks.sst2.path={task_folder}", "finetune.length=64", "finetune.seeds=[0,1]"]


def gold(*values: float) -> Gold:
    return Gold(np.array(values, np.float16), np.array(values) > 0.5)


def test_what_is_written_is_read_in_its_order(tmp_path: Path) -> None:
    assert read_gold(tmp_path) == describe_gold(tmp_path) == {}
    write_gold(tmp_path, {"a/seed0": gold(0.25, 1.0), "mnli_mismatched/seed1": gold(0.0)})
    found = read_gold(tmp_path)
    assert {name: (own.gold.tolist(), own.right.tolist()) for name, own in found.items()} == {
        "a/seed0": ([0.25, 1.0], [False, True]),
        "mnli_mismatched/seed1": ([0.0], [False]),
    }
    assert [path.name for path in tmp_path.iterdir()] == [GOLD]
    before = (tmp_path / GOLD).read_bytes()
    write_gold(tmp_path, found)
    assert (tmp_path / GOLD).read_bytes() == before


def test_log_loss_is_in_nats_and_finite(tmp_path: Path) -> None:
    write_gold(tmp_path, {"a/seed0": gold(0.25, 1.0), "a/seed1": gold(0.0)})
    found = describe_gold(tmp_path)
    assert found["log_loss"]["a/seed0"] == pytest.approx(np.log(4) / 2)
    assert found["log_loss"]["a/seed1"] == pytest.approx(25 * np.log(2))


def test_a_class_has_its_share_of_the_softmax() -> None:
    task_type = Classification(("no", "yes", "perhaps"))
    logits_B3 = np.array([[0.0, np.log(3.0), -np.inf], [np.log(2.0), np.log(2.0), np.log(4.0)]])
    batch: Any = {"label_B": torch.tensor([1, 0])}
    model: Any = None
    assert task_type.find_gold(model, model, batch, logits_B3) == pytest.approx([0.75, 0.25])
    rows = [Example("a", None, 1), Example("b", None, 0)]
    assert task_type.find_right(logits_B3, rows).tolist() == [True, False]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_written_label_has_the_product_of_its_tokens(tuned: list[str], architecture: str) -> None:
    cfg = compose([*tuned, *T5, f"model.architecture={architecture}"])
    data, model_spec = Run.of(cfg).data(), build(cfg.model)
    task = build(cfg.tasks.sst2)
    task_type = task.type_for(model_spec)
    examples = task.examples(Path(cfg.paths.cache))["validation"][:6]
    rows = task_type.encode(examples, data.tokenizer, data.vocabulary, Run.of(cfg).finetune)
    model = model_spec.build(data.vocabulary, 3).eval()
    head: Any = task_type.make_head(Run.of(cfg).finetune, model, 0)
    expected = []
    with torch.inference_mode():
        found_B = task_type.find_gold(model, head, task_batch(rows, np.arange(6)), None)
        for row in range(6):  # alone, so that every predicted token is of this row
            batch = task_batch(rows, np.array([row]))
            log_PV = log_softmax(head.logits(model(batch), batch), -1)
            expected.append(float(log_PV[range(len(log_PV)), batch["target_P"]].sum().exp()))
    assert found_B == pytest.approx(expected, rel=1e-4, abs=0)
    assert len(set(expected)) > 2


@pytest.mark.parametrize("family", [[], T5])
def test_a_run_keeps_them_beside_its_record(tuned: list[str], family: list[str], tmp_path: Path) -> None:
    folder = run(compose([*tuned, *family]))
    record, why = read_record(folder / "result.json")
    assert record, why
    found = read_gold(folder)
    assert list(found) == ["sst2/seed0", "sst2/seed1"]
    assert record.gold == describe_gold(folder)
    assert record.gold
    assert record.gold["file"] == GOLD
    for number, own in enumerate(found.values()):
        assert own.gold.dtype == np.float16
        assert own.right.mean() == record.task_runs[number].metrics["accuracy"]
        if not family:  # of two classes; the probability of a written label can be below the smallest float16
            assert (own.gold[own.right] >= 0.5).all()
            assert (own.gold[~own.right] <= 0.5).all()
    assert keep(folder, tmp_path / "kept", record.study).read(GOLD) is None, "only the run itself has them"


def test_a_task_without_probabilities_has_none(arguments: list[str], tmp_path: Path) -> None:
    for split in ("train", "validation"):
        rows = [{"sentence1": f"word {n}", "sentence2": "other", "label": n % 6} for n in range(12)]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / f"{split}.parquet")
    folder = run(compose([*arguments, "task=stsb", f"tasks.stsb.path={tmp_path}", "finetune.length=64"]))
    assert not (folder / GOLD).exists()
    assert json.loads((folder / "result.json").read_text())["gold"] == {}


def test_a_resumed_run_keeps_those_of_finished_fine_tunings(tuned: list[str]) -> None:
    folder = run(compose(tuned))
    whole = read_gold(folder)
    first = (folder / DONE).read_text().splitlines()[0]
    (folder / "result.json").unlink()
    (folder / DONE).write_text(first + "\n")
    write_gold(folder, {"sst2/seed0": whole["sst2/seed0"]})
    run(compose(tuned))
    again = read_gold(folder)
    assert list(again) == list(whole)
    assert all((again[name].gold == whole[name].gold).all() for name in whole)
    spent = [json.loads(line)["seconds"] for line in (folder / DONE).read_text().splitlines()]
    assert spent[0] == json.loads(first)["seconds"] > 0
    assert json.loads((folder / "result.json").read_text())["finetune_seconds"] == pytest.approx(sum(spent))


def test_seconds_are_unknown_if_one_fine_tuning_did_not_record_them() -> None:
    assert add_seconds([1.5, 2.0]) == 3.5
    assert add_seconds([1.5, None]) is None
    assert add_seconds([]) == 0.0


def test_a_flipped_byte_is_refused_or_changes_no_answer(tmp_path: Path) -> None:
    answers = {"sst2/seed0": Gold(np.linspace(0, 1, 9).astype(np.float16), np.arange(9) % 2 == 0)}
    write_gold(tmp_path, answers)
    whole, refused = (tmp_path / GOLD).read_bytes(), 0
    for at in range(len(whole)):
        (tmp_path / GOLD).write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        try:
            assert hash_answers(read_gold(tmp_path)) == hash_answers(answers)
        except UserError:
            refused += 1
    assert refused > len(whole) / 2
