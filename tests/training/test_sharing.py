"""What arms share: a pre-training, and if they differ in nothing, the fine-tunings as well."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from paribus.core.config import compose
from paribus.training import finetune
from paribus.training.run import run
from paribus.training.sharing import _link

SCRATCH = ["trainer.max_steps=0", "untrained=true", "finetune.batch_size=8", "finetune.seeds=[0,1]", "logger=none"]


@pytest.fixture
def scratch(arguments: list[str], task_folder: Path) -> list[str]:
    return [*arguments, "task=sst2", f"tasks.sst2.path={task_folder}", *SCRATCH]


@pytest.fixture
def tuned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The arms of the fine-tunings that were not shared, one for each."""
    arms: list[str] = []
    train = finetune.train_model
    monkeypatch.setattr(finetune, "train_model", lambda base, *rest: (arms.append(base.run.arm), train(base, *rest))[1])
    return arms


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def test_arms_of_one_pretraining_share_it(
    arguments: list[str], task_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = ["task=sst2", f"tasks.sst2.path={task_folder}", "finetune.batch_size=8"]
    first = run(compose([*arguments, *task, "arm=one"]))
    second = run(compose([*arguments, *task, "arm=two", "finetune.optimizer.lr=1e-5"]))
    assert record(first)["pretrain_signature"] == record(second)["pretrain_signature"]
    assert record(first)["signature"] != record(second)["signature"]
    assert record(first)["budget"] == record(second)["budget"]
    said = capsys.readouterr().err
    assert "pre-training found" in said
    assert "fine-tuning runs found" not in said


def test_arms_that_differ_in_nothing_are_fine_tuned_once(scratch: list[str], tuned: list[str]) -> None:
    own = ["finetune.keep=true", "finetune.points=2"]
    first, second = (run(compose([*scratch, *own, f"arm={arm}"])) for arm in ("from_scratch", "scratch"))
    assert tuned == ["from_scratch"] * 2
    assert first != second
    one, other = record(first), record(second)
    assert (one["arm"], other["arm"]) == ("from_scratch", "scratch")
    for part in ("task_runs", "metrics", "gold", "curves", "finetune_seconds", "signature"):
        assert one[part] == other[part]
    for name in ("gold.npz", "tuning.jsonl"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    weights = [{path.name: path.read_bytes() for path in folder.glob("tuned/*")} for folder in (first, second)]
    assert weights[0] == weights[1]
    assert len(weights[0]) == 2


def test_what_is_shared_has_the_bits_of_what_is_trained(scratch: list[str], tuned: list[str], tmp_path: Path) -> None:
    runs = [run(compose([*scratch, f"study={study}", "arm=scratch"])) for study in ("s", "other")]
    assert tuned == ["scratch"] * 4  # another study shares no fine-tuning
    shared = run(compose([*scratch, "study=s", "arm=from_scratch"]))
    assert (shared / "gold.npz").read_bytes() == (runs[1] / "gold.npz").read_bytes()
    assert record(shared)["metrics"] == record(runs[1])["metrics"]


def test_an_arm_that_keeps_more_or_has_another_precision_is_fine_tuned(scratch: list[str], tuned: list[str]) -> None:
    changes = {"bf16": "profile.precision=bf16-mixed", "points": "finetune.points=2", "kept": "finetune.keep=true"}
    folders = [run(compose([*scratch, "arm=plain", "profile.precision=32-true"]))]
    for arm, change in changes.items():
        folders.append(run(compose([*scratch, f"arm={arm}", "profile.precision=32-true", change])))
    assert len({folder.name for folder in folders}) == 1
    assert tuned == [arm for arm in ("plain", *changes) for _ in range(2)]


def test_a_run_whose_config_cannot_be_compared_is_not_shared(scratch: list[str], tuned: list[str]) -> None:
    first = run(compose([*scratch, "arm=one"]))
    (first / "config.yaml").write_text("finetune: {keep: false}\n")  # of a version without `points`
    run(compose([*scratch, "arm=two"]))
    assert tuned == ["one"] * 2 + ["two"] * 2


def test_damaged_answers_are_not_shared(scratch: list[str], tuned: list[str]) -> None:
    first = run(compose([*scratch, "arm=one"]))
    (first / "gold.npz").write_bytes(b"damaged")
    second = run(compose([*scratch, "arm=two"]))
    assert tuned == ["one"] * 2 + ["two"] * 2
    assert record(first)["gold"] == record(second)["gold"]


def test_a_file_that_an_interrupted_process_left_is_linked_again(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("whole")
    for _ in range(2):
        _link(str(source), str(target))
    target.unlink()
    shutil.copyfile(source, target)
    target.write_text("half")
    _link(str(source), str(target))
    assert target.read_text() == source.read_text() == "whole"
