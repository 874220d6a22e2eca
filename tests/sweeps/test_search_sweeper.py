"""`hydra/sweeper=optuna` in a real Hydra application, as its own process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import optuna
import pytest
import yaml
from optuna.trial import TrialState

from paribus.sweeps.search.storage import open_storage

SHOWS_ITSELF = "import paribus.commands.cli; paribus.commands.cli.main(); print(open('/proc/self/cmdline').read())"
APP = Path(__file__).parents[1] / "support" / "search_app.py"


def run(folder: Path, *overrides: str, fails: bool = False) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "SEARCH_LOG": str(folder / "log")}
    own = ["-m", "hydra/sweeper=optuna", f"hydra.sweep.dir={folder}", "hydra.sweeper.study_name=s"]
    command = [sys.executable, str(APP), *own, *overrides]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=folder, timeout=300)
    assert (done.returncode != 0) == fails, done.stderr
    return done.stdout + done.stderr


def lines(folder: Path) -> list[list[str]]:
    return [text.split() for text in (folder / "log").read_text().splitlines()]


def results(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((folder / "s" / "optimization_results.yaml").read_text())
    return found


def study(folder: Path) -> optuna.Study:
    return optuna.load_study(study_name="s", storage=open_storage(f"journal:{folder}/s/journal.log"))


def test_the_grammar_seeds_conditional_spaces_and_resume(tmp_path: Path) -> None:
    own = [
        "x=tag(log, interval(0.01, 1))", "y=choice(a,b)", "hydra.sweeper.objective=loss", "hydra.sweeper.seeds=[5,7]",
        "hydra.sweeper.custom_search_space=search_app.conditional",
    ]  # fmt: skip
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "trusted.yaml").write_text("trusted: [search_app]\n")
    run(tmp_path, *own, "hydra.sweeper.n_trials=4")
    out = run(tmp_path, *own, "hydra.sweeper.n_trials=6")
    assert "4 of 6 trials finished, sampler seed 0" in out
    assert len(lines(tmp_path)) == 12
    for trial in study(tmp_path).trials:
        five, seven = trial.user_attrs["values"]
        assert trial.value == pytest.approx((five[0] + seven[0]) / 2)
        assert seven[0] - five[0] == pytest.approx(2)
        assert ("z" in trial.params) == (trial.params["y"] == "b")
    assert {line[1] for line in lines(tmp_path)} == {"a", "b"}
    assert all((line[3] == "0.0") == (line[1] == "a") for line in lines(tmp_path))
    assert float(results(tmp_path)["best_params"]["x"]) == pytest.approx(study(tmp_path).best_params["x"], rel=1e-3)
    assert "another search space" in run(tmp_path, *own, "x=interval(0,2)", fails=True)


@pytest.mark.slow
def test_pruning_spends_fewer_tokens_for_the_same_best(tmp_path: Path) -> None:
    spent, best = {}, {}
    for name, pruner in (("all", "optuna.pruners.NopPruner"), ("pruned", "optuna.pruners.MedianPruner")):
        folder = tmp_path / name
        folder.mkdir()
        run(
            folder, "x=interval(0,1)", "hydra.sweeper.n_trials=20", "hydra.sweeper.objective=loss",
            "hydra/sweeper/sampler=random", f"hydra.sweeper.pruner={{_target_: {pruner}}}",
        )  # fmt: skip
        trials = study(folder).trials
        spent[name], best[name] = sum(trial.user_attrs["tokens"] for trial in trials), results(folder)["best_value"]
        assert (TrialState.PRUNED in {trial.state for trial in trials}) == (name == "pruned")
        assert not [trial for trial in trials if trial.state in (TrialState.FAIL, TrialState.RUNNING)]
    assert best["pruned"] == best["all"]
    assert spent["pruned"] < 0.8 * spent["all"]


def test_several_directions_give_a_pareto_front(tmp_path: Path) -> None:
    run(
        tmp_path, "x=interval(0,1)", "hydra.sweeper.n_trials=12", "hydra.sweeper.direction=[minimize,minimize]",
        "hydra.sweeper.objective=[loss,flops]", "hydra/sweeper/sampler=nsgaii",
    )  # fmt: skip
    front = [solution["values"] for solution in results(tmp_path)["solutions"]]
    assert front
    assert not any(a[0] <= b[0] and a[1] <= b[1] and a != b for a in front for b in front), "none beats another"


def test_a_trial_over_its_time_fails(tmp_path: Path) -> None:
    own = ["x=interval(0,1)", "seconds=20", "hydra.sweeper.n_trials=1", "hydra.sweeper.trial_timeout=0.5"]
    assert "over trial_timeout" in run(tmp_path, *own, "hydra.sweeper.objective=loss", fails=True)
    assert study(tmp_path).trials[0].user_attrs["kind"] == "overdue"


def test_a_literal_password_is_in_no_file_and_no_line(tmp_path: Path) -> None:
    url = "postgresql://me:open-sesame@127.0.0.1:1/none"
    out = run(tmp_path, "x=interval(0,1)", f"hydra.sweeper.storage='{url}'", fails=True)
    assert "open-sesame" not in out
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and "open-sesame" in path.read_text()]


def test_a_literal_password_is_in_no_config_dump_and_no_process_title(tmp_path: Path) -> None:
    url = "postgresql://me:open-sesame@127.0.0.1:1/none"
    given = ["search=optuna_lr", "scale=test", f"hydra.sweeper.storage='{url}'"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for flags in (["--cfg", "hydra"], ["--info", "all"]):
        command = [sys.executable, "-c", SHOWS_ITSELF, "train", *given, *flags]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path, timeout=120)
        assert "postgresql://me@127.0.0.1:1/none" in done.stdout, done.stderr
        assert "open-sesame" not in done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launcher", "settings"),
    [("joblib", ["hydra.launcher.n_jobs=2"]), ("submitit_local", ["hydra.launcher.timeout_min=2"])],
)
def test_slots_of_a_launcher_with_processes_run_side_by_side(
    tmp_path: Path, launcher: str, settings: list[str]
) -> None:
    pytest.importorskip(f"hydra_plugins.hydra_{launcher.partition('_')[0]}_launcher")
    run(
        tmp_path, "x=interval(0,1)", "seconds=0.3", f"hydra/launcher={launcher}", *settings,
        "hydra.sweeper.n_jobs=2", "hydra.sweeper.n_trials=6", "hydra.sweeper.objective=loss",
    )  # fmt: skip
    assert len(study(tmp_path).trials) == 6
    assert len({line[4] for line in lines(tmp_path)}) > 1, "in several processes"
