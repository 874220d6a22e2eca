"""A task of a user's own: one YAML file in the working directory's `conf/task`, on files of any format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paribus.core.config import compose
from paribus.training.description import Run
from paribus.training.run import run

OWN = """
_target_: paribus.tasks.tables.table.LabelTable
name: mine
path: {folder}
columns: {{text: review, label: stars}}
classes: [bad, good]
max_train: 12
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with two CSV files and a folder for configs."""
    for split, count in (("train", 16), ("validation", 8)):
        rows = [f"{('a dull', 'a bright')[n % 2]} story of {n},{('bad', 'good')[n % 2]}" for n in range(count)]
        (tmp_path / f"{split}.csv").write_text("\n".join(["review,stars", *rows]) + "\n")
    (tmp_path / "conf/task").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("header", ["", "# My own task.\n", "# @package tasks.mine\n"])
def test_one_file_is_a_task(own: Path, arguments: list[str], header: str) -> None:
    (own / "conf/task/mine.yaml").write_text(header + OWN.format(folder=own))
    run_of = Run.of(compose([*arguments, "task=mine"]))
    assert list(run_of.tasks) == ["mine"]
    assert run_of.tasks["mine"].summary(own / "cache")["examples"] == {"train": 12, "validation": 8}


@pytest.mark.parametrize("header", ["", "# @package tasks.mine\n"])
def test_the_command_line_limits_a_task_whose_file_does_not(own: Path, arguments: list[str], header: str) -> None:
    text = OWN.format(folder=own).replace("max_train: 12\n", "")
    (own / "conf/task/mine.yaml").write_text(header + text)
    assert Run.of(compose([*arguments, "task=mine"])).tasks["mine"].limits == {"train": None, "validation": None}
    limited = compose([*arguments, "task=mine", "tasks.mine.max_train=10", "tasks.mine.max_validation=4"])
    assert Run.of(limited).tasks["mine"].summary(own / "cache")["examples"] == {"train": 10, "validation": 4}


def test_own_tasks_stand_beside_shipped_ones(own: Path, arguments: list[str]) -> None:
    for name in ("mine", "yours"):
        (own / f"conf/task/{name}.yaml").write_text(OWN.format(folder=own).replace("mine", name))
    cfg = compose([*arguments, "task=[mine,sst2,yours]", f"tasks.sst2.path={own}"])
    assert list(cfg.tasks) == ["mine", "sst2", "yours"]
    assert "task" not in cfg


def test_a_run_fine_tunes_on_it(own: Path, arguments: list[str]) -> None:
    (own / "conf/task/mine.yaml").write_text(OWN.format(folder=own))
    found = json.loads((run(compose([*arguments, "task=mine", "logger=none"])) / "result.json").read_text())
    assert set(found["task_runs"][0]["metrics"]) == {"accuracy"}
    assert found["baselines"]["mine/accuracy"]["majority"] == 0.5
