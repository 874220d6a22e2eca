"""Components that have moved: what named them before still loads, under the same run id."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from paribus.core.build import build, kind
from paribus.core.config import compose, plain
from paribus.core.moved import MOVED, find_moved, update_targets
from paribus.runs.identity import meaning

ROOT = Path(__file__).parents[2]
COMMITTED = sorted((ROOT / "analysis" / "results").rglob("configs.yaml"))


def is_module(name: str) -> bool:
    try:
        return find_spec(f"paribus.{name}") is not None
    except ModuleNotFoundError:
        return False


def test_each_entry_leads_from_a_module_that_is_gone_to_one_that_is_there() -> None:
    assert [new for new in MOVED.values() if not is_module(new)] == []
    packages = {"data.annotators", "tasks.tables"}  # where a module was, there is a package, or the other way round
    assert [old for old in MOVED if is_module(old) and old not in packages] == []
    assert not set(MOVED) & set(MOVED.values())


def test_every_class_that_a_committed_record_names_is_there() -> None:
    named = {
        target for path in COMMITTED for target in re.findall(r"_target_: *['\"]?(paribus\.[\w.]+)", path.read_text())
    }
    assert len(named) > 50
    assert [target for target in named if kind(target).__name__ != target.rpartition(".")[2]] == []


@pytest.mark.parametrize("old", ["paribus.data.schedule.Static", "paribus.tasks.sampling.Equally"])
def test_an_earlier_name_builds_and_counts_as_the_same(old: str) -> None:
    new = find_moved(old)
    assert new != old
    assert build({"_target_": old}) == build({"_target_": new})
    assert meaning({"_target_": old}) == meaning({"_target_": new})
    assert update_targets({"a": [{"_target_": old, "x": 1}]}) == {"a": [{"_target_": new, "x": 1}]}


def test_a_users_choice_that_names_an_earlier_module_composes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "conf" / "masking" / "schedule"
    folder.mkdir(parents=True)
    (folder / "fixed.yaml").write_text("_target_: paribus.data.schedule.Static\n")
    monkeypatch.chdir(tmp_path)
    configs = [plain(compose([f"masking/schedule={choice}"]))["masking"] for choice in ("fixed", "static")]
    assert meaning(configs[0]) == meaning(configs[1])
