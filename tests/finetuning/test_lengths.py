"""The longest input of a task, from the distribution of the lengths of its texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.training.description import Run
from paribus.training.finetuner import encode_training
from paribus.training.run import run


def write(folder: Path, lengths: list[int]) -> Path:
    folder.mkdir()
    for split in ("train", "validation"):
        rows = [{"sentence": " ".join(["a"] * length), "label": n % 2} for n, length in enumerate(lengths)]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def lengths(arguments: list[str], *more: str) -> list[int]:
    described = Run.of(compose([*arguments, "task=sst2", *more]))
    found: Any = encode_training(described, described.data(), "sst2").length_N
    return list(map(int, found))


def test_the_length_holds_the_share_of_the_training_texts(arguments: list[str], tmp_path: Path) -> None:
    own = [*arguments, f"tasks.sst2.path={write(tmp_path / 'task', list(range(1, 21)))}", "finetune.length=32"]
    whole = np.array(lengths(own))
    assert whole.tolist() == [length + 2 for length in range(1, 21)], "[CLS] text [SEP]"
    for share, longest in ((1.0, 22), (0.9, 21), (0.5, 13)):
        cut = lengths(own, f"finetune.covers={share}")
        assert max(cut) == longest
        assert (np.array(cut) == whole).mean() >= share
    assert max(lengths(own, "finetune.covers=1.0", "finetune.length=9")) == 9


def test_a_run_records_the_length_and_keeps_its_name_without_it(arguments: list[str], tmp_path: Path) -> None:
    own = [*arguments, "task=sst2", f"tasks.sst2.path={write(tmp_path / 'task', [2, 3, 4, 9] * 4)}"]
    folder = run(compose([*own, "finetune.covers=0.7"]))
    metrics = json.loads((folder / "result.json").read_text())["task_runs"][0]["metrics"]
    assert metrics["length"] == 6
    plain = json.loads((run(compose(own)) / "result.json").read_text())
    assert "length" not in plain["task_runs"][0]["metrics"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["finetune.covers=0"], r"finetune\.covers=0.* is not a share"),
        (["finetune.covers=1.5"], r"finetune\.covers=1\.5 is not a share"),
        (["finetune.covers=0.9", "finetune/head/windows=mean"], r"finetune\.covers is set, but it does nothing"),
    ],
)
def test_a_share_that_makes_no_sense_is_refused(
    wrong: list[str], said: str, arguments: list[str], task_folder: Path
) -> None:
    with pytest.raises(UserError, match=said):
        run(compose([*arguments, "task=sst2", f"tasks.sst2.path={task_folder}", *wrong]))
