"""What holds for every choice of the config group `launcher`, wherever its runs train."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import slurm_server

from paribus.core.build import build
from paribus.core.config import compose_launcher
from paribus.core.config_names import choices, conf_dir
from paribus.core.errors import UserError
from paribus.sweeps.launchers.base import Demand, Launcher
from paribus.sweeps.request import parse

CHOICES = choices("launcher")


def launcher(choice: str, *overrides: str) -> Launcher:
    found = build(compose_launcher([f"launcher={choice}", *overrides]))
    assert isinstance(found, Launcher)
    return found


def settings(choice: str) -> dict[str, Any]:
    return {key: value for key, value in compose_launcher([f"launcher={choice}"]).items() if key != "_target_"}


@pytest.mark.parametrize("choice", CHOICES)
def test_its_file_says_what_it_is_and_each_setting_what_it_does(choice: str) -> None:
    lines = (conf_dir() / "launcher" / f"{choice}.yaml").read_text().splitlines()
    assert lines[0].startswith("# ")
    assert all("#" in line for line in lines if line.partition(":")[0] in settings(choice))


@pytest.mark.parametrize("choice", CHOICES)
def test_it_is_no_override_of_the_arms_and_has_its_settings_alone(choice: str) -> None:
    given = [f"launcher={choice}", *(f"launcher.{key}={value}" for key, value in settings(choice).items() if value)]
    request = parse("run", ["roberta_table1", *given, "seed=1"])
    assert request.launcher == tuple(given)
    assert request.overrides == ()
    assert build(compose_launcher(request.launcher)) == launcher(choice)
    foreign = next(key for other in CHOICES for key in settings(other) if key not in settings(choice))
    with pytest.raises(UserError, match=rf"'launcher\.{foreign}' does not apply to launcher={choice}"):
        compose_launcher([f"launcher={choice}", f"launcher.{foreign}=1"])


@pytest.mark.parametrize("choice", CHOICES)
def test_no_slot_is_refused_before_anything_is_started(choice: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="slots=0 is below 1"):
        launcher(choice).open(Demand(2, 0, 1, tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("choice", [choice for choice in CHOICES if launcher(choice).remote])
def test_what_is_missing_is_said_with_what_to_type(
    choice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if choice == "ray" and importlib.util.find_spec("ray"):
        pytest.skip("ray is installed")
    if choice == "slurm" and slurm_server.missing() is None:
        pytest.skip("this machine has Slurm")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=rf"^launcher={choice}(,| needs)[^:]*: .*(pip install|run this)"):
        launcher(choice).open(Demand(2, None, 1, tmp_path))
