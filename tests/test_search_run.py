"""`ceteris run` of a search: workers side by side, on one study of real, tiny runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import story

from ceteris.cli import main


@pytest.mark.slow
def test_two_workers_search_a_recipe_and_show_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    for name, numbers in (("train", range(60)), ("validation", range(60, 70))):
        (texts / f"{name}.txt").write_text("\n\n".join(story(number) for number in numbers))
    given = [f"paths.cache={tmp_path / 'cache'}", "logger=none", "corpus=text", f"corpus.path={texts}", "task=none"]
    own = ["hydra.sweeper.n_trials=4", "hydra.sweeper.seeds=[100,101]", f"runs={tmp_path / 'runs'}", "scale=test"]
    assert main(["run", "optuna_recipe", *own, *given, "slots=2"]) == 0
    said = capfd.readouterr()
    assert "4/4 done" in said.out
    assert "best: trial" in said.out
    assert said.err.count("log: ") == 2
