"""No name of a study, an arm or a scale leaves the folder of the runs, wherever it comes from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from paribus.core.checksums import seal
from paribus.core.config import compose, plain
from paribus.core.errors import UserError
from paribus.core.files import is_name
from paribus.runs.record import read_record
from paribus.training.description import Run

BAD = ["../../x", "..", ".", ".hidden", "/abs", "a/b", "a b", "x" * 300, "été", "研究", "a\n", ""]


def listing(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def test_names() -> None:
    assert not any(map(is_name, [*BAD, "a\0", None, 3]))
    assert all(map(is_name, ["roberta_table1", "static_x10", "0.15", "a+b", "x.tune"]))


@pytest.mark.parametrize("key", ["study", "arm", "scale"])
def test_an_override_names_no_folder_elsewhere(
    key: str,
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refusal: Callable[..., str],
    refused_run: Callable[..., str],
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [text for text in arguments if key != "scale" or not text.startswith("scale=")]
    before = listing(tmp_path.parent)
    for name in [*BAD, "../bert/test"]:
        quoted = name.replace("\n", "")
        if not quoted or quoted == "a":
            quoted = "a/."
        assert key in refused_run(*given, "task=none", f"{key}='{quoted}'")
        if key != "arm":
            assert key in refusal("run", "roberta_table1", *given, f"{key}={name}")
    assert listing(tmp_path.parent) == before


@pytest.mark.parametrize("key", ["stages", "tasks"])
def test_a_stored_config_names_no_folder_elsewhere(key: str, arguments: list[str]) -> None:
    config = plain(compose([*arguments, "task=none"]))
    config[key] = {"../../x": {}}
    with pytest.raises(UserError, match="cannot name a folder"):
        Run.of(config)


@pytest.mark.parametrize("key", ["study", "arm", "signature"])
def test_a_record_names_no_folder_elsewhere(key: str, tmp_path: Path) -> None:
    own = {"schema": 1, "signature": "a1", "study": "s", "arm": "a", "seed": 0, "scale": None, "status": "failed"}
    path = tmp_path / "result.json"
    path.write_text(json.dumps(seal(own)))
    assert read_record(path)[0] is not None
    path.write_text(json.dumps(seal({**own, key: "../../x"})))
    assert read_record(path) == (None, f"'{key}' cannot name a folder")
