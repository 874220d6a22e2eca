"""A seeded part of `make chaos`: bad input ends in one line and status 2, or is no bad input; nothing else happens."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzzing import command_cases, data_cases, judge, override_cases, prepare_run, said_by, write_odd_sweeps


def faults(found: list[tuple[str, object]]) -> list[str]:
    return [f"{said} {case}" for said, case in found if said.startswith("fault")]


def test_overrides(arguments: list[str], tmp_path: Path) -> None:
    cases, fixed = list(override_cases(11, 45)), [*arguments, "task=none", "logger=none"]
    found = [(judge(lambda own=own: prepare_run([*fixed, *own], tmp_path)), own) for own in cases]
    assert faults(found) == []
    assert sum(said.startswith("refused") for said, _ in found) > len(cases) / 2


def test_command_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_odd_sweeps(tmp_path)
    assert faults([(said_by(argv), argv) for argv in command_cases(11, 130)]) == []


def test_data_files(arguments: list[str], tmp_path: Path) -> None:
    found = []
    for name, own in data_cases(11, 25, tmp_path):
        kept = [text for text in arguments if not (own[0] == "corpus=text" and text.startswith("corpus"))]
        given = [*kept, "logger=none", *([] if own[0].startswith("task=") else ["task=none"]), *own]
        found.append((judge(lambda given=given: prepare_run(given, tmp_path / "x")), name))
    assert faults(found) == []
