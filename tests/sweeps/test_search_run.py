"""`paribus run` of a search: what it optimizes is known before the first trial; workers side by side."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import optuna
import pytest

from paribus.commands.cli import main
from paribus.sweeps.search.storage import open_storage


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


def test_a_search_without_an_objective_minimizes_the_held_out_loss(arguments: list[str], tmp_path: Path) -> None:
    own = ["-m", "hydra/sweeper=optuna", "masking.rate=interval(0.1,0.5)", "hydra.sweeper.n_trials=2"]
    pruner = "hydra.sweeper.pruner={_target_: optuna.pruners.NopPruner}"
    own += ["task=none", "logger=none", "trainer.max_steps=2", "evaluation.points=2"]
    assert (
        main(["train", *arguments, *own, pruner, f"hydra.sweeper.folder={tmp_path}", "hydra.sweeper.study_name=s"]) == 0
    )
    study = optuna.load_study(study_name="s", storage=open_storage(f"journal:{tmp_path / 'journal.log'}"))
    losses = {json.loads(path.read_text())["metrics"]["mlm_loss"] for path in tmp_path.rglob("result.json")}
    assert {trial.value for trial in study.trials} == losses
    assert len(losses) == 2


@pytest.mark.parametrize("given", ["hydra.sweeper.direction=[minimize,minimize]", "hydra.sweeper.objective=[a,b]"])
def test_objectives_and_directions_are_compared_before_the_first_trial(
    given: str, arguments: list[str], tmp_path: Path, refusal: Callable[..., str]
) -> None:
    own = ["-m", "hydra/sweeper=optuna", "masking.rate=interval(0.1,0.5)", given, "logger=none", "task=none"]
    assert "objectives for" in refusal("train", *arguments, *own)
    assert not list(tmp_path.rglob("result.json"))


@pytest.mark.parametrize("pruner", ["null", "{_target_: optuna.pruners.MedianPruner}"])
def test_an_objective_that_no_run_has_ends_the_search_after_one_trial(
    pruner: str, arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = ["-m", "hydra/sweeper=optuna", "masking.rate=interval(0.1,0.5)", "logger=none", "task=none"]
    search = ["objective=recall", "n_trials=5", f"folder={tmp_path}", "study_name=s", f"pruner={pruner}"]
    assert main(["train", *arguments, *own, *(f"hydra.sweeper.{text}" for text in search)]) == 2
    told = capsys.readouterr().err
    assert "paribus: hydra.sweeper.objective=recall: the run has no recall: it has" in told
    assert "mlm_loss" in told
    study = optuna.load_study(study_name="s", storage=open_storage(f"journal:{tmp_path / 'journal.log'}"))
    assert len(study.trials) == 1
