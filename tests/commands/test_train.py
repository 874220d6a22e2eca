"""`paribus train`: where its runs go."""

from __future__ import annotations

from pathlib import Path

import pytest

from paribus.commands.cli import main


@pytest.mark.parametrize("several", [False, True])
def test_runs_with_a_folder_of_their_own_need_no_folder_of_runs(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, several: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    short = ["task=none", "trainer.max_steps=0", "logger=none", "seed=3"]
    assert main(["train", *["-m"] * several, *arguments, *short, f"run_dir={tmp_path / 'here'}"]) == 0
    assert (tmp_path / "here" / "result.json").is_file()
    assert (tmp_path / "runs").exists() == several
    assert list(tmp_path.rglob(".ended-*")) == []
