"""`paribus run` of a search: workers side by side, on one study of real, tiny runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from paribus.commands.cli import main


@pytest.mark.slow
def test_two_workers_search_a_recipe_and_show_it(
    arguments: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    own = ["hydra.sweeper.n_trials=4", "hydra.sweeper.seeds=[100,101]", f"runs={tmp_path / 'runs'}", "task=none"]
    assert main(["run", "optuna_recipe", *arguments, *own, "logger=none", "slots=2"]) == 0
    said = capfd.readouterr()
    assert "4/4 done" in said.out
    assert "best: trial" in said.out
    assert said.err.count("log: ") == 2
