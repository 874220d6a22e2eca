"""The W&B run of a study: its comparison, and what a search went through."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import optuna
import pytest
from fake_records import design, make_table, study
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import TrialState, create_trial

from paribus.commands.cli import main
from paribus.core.jsonable import from_json, to_json
from paribus.reports.tables.schema import Table
from paribus.reports.wandb_study import list_cells, make_tuned_studies, track_search
from paribus.sweeps.search.status import describe_importances, list_history, list_pareto, rank_importances

WANDB = {"_target_": "paribus.training.logger.Wandb", "mode": "offline"}
SPACE = {"lr": FloatDistribution(0.001, 0.1, log=True), "masking": CategoricalDistribution(["a", "b"])}


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("WANDB_API_KEY", "WANDB_BASE_URL", "WANDB_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))


def lines(folder: Path) -> list[dict[str, Any]]:
    (file,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(file)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in text.splitlines()]


def logged(folder: Path) -> set[str]:
    """The keys of the one row of history."""
    (row,) = (line["history"]["item"] for line in lines(folder) if line["type"] == "history")
    return {name.removesuffix("._type") for name in row if name.endswith("._type")}


def table(folder: Path, name: str) -> dict[str, Any]:
    (file,) = folder.glob(f"wandb/offline-run-*/files/media/table/{name}_*.table.json")
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def search(values: list[list[float] | None], directions: list[str]) -> optuna.Study:
    study = optuna.create_study(directions=directions)
    for at, value in enumerate(values):
        params = {"lr": 0.001 * (at + 1), "masking": "ab"[at % 2]}
        state = TrialState.COMPLETE if value else TrialState.PRUNED
        study.add_trial(create_trial(state=state, values=value, params=params, distributions=SPACE))
    return study


def test_history_knows_the_best_so_far_in_both_directions() -> None:
    values: list[list[float] | None] = [[3.0], None, [1.0], [2.0]]
    assert list_history(search(values, ["minimize"])) == [(0, 3.0, 3.0), (2, 1.0, 1.0), (3, 2.0, 1.0)]
    assert [row[2] for row in list_history(search(values, ["maximize"]))] == [3.0, 3.0, 3.0]


def test_the_front_holds_what_nothing_beats() -> None:
    study = search([[1.0, 3.0], [2.0, 2.0], [3.0, 3.0]], ["minimize", "minimize"])
    assert [(number, front) for number, _, _, front in list_pareto(study)] == [(0, True), (1, True), (2, False)]


def test_importance_finds_the_parameter_that_matters() -> None:
    study = search([[float(at % 2)] for at in range(12)], ["minimize"])
    shares = rank_importances(study)
    assert shares["masking"] > 0.9
    assert rank_importances(search([[1.0]], ["minimize"])) == {}
    (line,) = describe_importances(study, ["mlm_loss"])
    assert line.startswith(f"importance for mlm_loss: masking {shares['masking']:.0%}, lr ")
    assert describe_importances(search([[1.0]], ["minimize"]), ["mlm_loss"]) == []


def test_a_search_is_one_run_of_tables_and_plots(tmp_path: Path) -> None:
    study = search([[float(at % 3)] for at in range(6)], ["minimize"])
    track_search(WANDB, "mine", "abc", tmp_path, study)
    assert {"trials", "history_table", "importances/value_table"} <= logged(tmp_path)
    trials = table(tmp_path, "trials")
    assert trials["columns"] == ["trial", "state", "value", "lr", "masking"]
    assert trials["data"][1][:3] == [1, "COMPLETE", 1.0]
    track_search(WANDB, "mine", "abc", tmp_path, study)  # nothing new: no second segment
    assert len(list(tmp_path.glob("wandb/offline-run-*"))) == 1
    head = next(line["run"] for line in lines(tmp_path) if line["type"] == "run")
    assert (head["job_type"], head["run_group"]) == ("study", "mine")


def test_several_objectives_have_a_front(tmp_path: Path) -> None:
    track_search(WANDB, "two", "abc", tmp_path, search([[1.0, 3.0], [2.0, 2.0], [3.0, 3.0]], ["minimize", "minimize"]))
    assert {"pareto_trials", "pareto_table", "importances/value1_table"} <= logged(tmp_path)
    assert [row[3] for row in table(tmp_path, "pareto_trials")["data"]] == [True, True, False]


def test_the_search_of_tuned_arms_becomes_studies() -> None:
    spec = {
        "space": {"optimizer.lr": "tag(log, interval(0.001, 0.1))", "batch.size": "choice(8, 16)"},
        "on": "mlm_loss",
    }
    trials = [
        {"values": {"optimizer.lr": "0.01", "batch.size": "8"}, "value": 2.0},
        {"values": {"optimizer.lr": "0.1", "batch.size": "16"}, "value": None},
    ]
    (study,) = make_tuned_studies({"spec": spec, "arms": {"a": {"trials": trials}}}).values()
    assert study.best_params == {"optimizer.lr": 0.01, "batch.size": "8"}
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "FAIL"]
    assert make_tuned_studies({}) == {}


def test_a_sweep_ends_with_its_comparison_and_an_artifact(arguments: list[str], tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    own = [text for text in arguments if not text.startswith("paths.runs")]
    given = ["run", "roberta_table1", *own, f"runs={runs}", f"results={tmp_path / 'kept'}", "seeds=0", "task=none"]
    assert main([*given, "logger=wandb"]) == 0
    folder = runs / "roberta_table1" / ".test"
    assert {"comparison", "claims"} <= logged(folder)
    comparison = table(folder, "comparison")
    arms = {row[comparison["columns"].index("arm")] for row in comparison["data"]}
    assert arms == {"static_x10", "dynamic", "static"}
    artifacts = [line["artifact"] for line in lines(folder) if line["type"] == "artifact"]
    (kept,) = (one for one in artifacts if one["type"] == "table")
    files = {entry["path"] for entry in kept["manifest"]["contents"]}
    assert {"table.md", "table.json", "table.csv"} <= files
    assert all(Path(entry["local_path"]).is_relative_to(folder) for entry in kept["manifest"]["contents"])
    assert main([*given, "logger=wandb"]) == 0
    assert len(list(folder.glob("wandb/offline-run-*"))) == 1


def test_cells_put_the_paper_beside_our_column() -> None:
    cell = {"mean": 0.5, "sd": 0.1, "ci_low": 0.4, "ci_high": 0.6, "values": [0.4, 0.6], "seeds": [0, 1]}
    arm = {
        "name": "a", "overrides": [], "n": 2, "status": "done", "best": [], "runs": [],
        "metrics": {"sst2/accuracy": cell},
        "versus_baseline": {"sst2/accuracy": {"difference": 0.1, "p": 0.04, "ci_low": 0.0, "ci_high": 0.2, "n": 2}},
        "published": {"sst2_acc": {"value": 92.5, "source": "the paper"}},
    }  # fmt: skip
    content = to_json(make_table(design(), study())) | {"arms": [arm]}
    content["paper"]["beside"] = {"sst2/accuracy": "sst2_acc"}
    (row,) = list_cells(from_json(Table, content))
    assert (row["mean"], row["ci_low"], row["difference"], row["n"], row["published"]) == (0.5, 0.4, 0.1, 2, 92.5)
