"""What happened to a study before its table, from the commits of its folder."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from paribus.core.config_names import conf_dir
from paribus.core.recipes import name_recipe
from paribus.reports.history import derive_history, describe_history, read_history, write_history
from paribus.sweeps import sweep_file

ROOT = Path(__file__).parents[2]
SWEEP = """study: rates
base: [trainer.max_tokens={tokens}]
arms: {{low: [masking.rate=0.1], high: [masking.rate={rate}]}}
baseline: low
columns: [mlm_loss]
claims: [high > low on mlm_loss, margin {margin}]
scales: {{cpu: {{overrides: [batch.size={batch}]}}}}
"""
Commit = Callable[..., None]


@pytest.fixture
def commit(tmp_path: Path) -> Commit:
    """Commits the sweep file with these settings, and the records of some arms and seeds with this loss."""

    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True, capture_output=True)

    git("init", "-q")
    git("config", "user.name", "A")
    git("config", "user.email", "a@example.org")

    def one(
        runs: str = "", loss: float = 1.0, tokens: int = 100, rate: float = 0.4, margin: float = 0.1, batch: int = 8
    ) -> None:
        text = SWEEP.format(tokens=tokens, rate=rate, margin=margin, batch=batch)
        (tmp_path / "rates.yaml").write_text(text)
        for run in runs.split():
            arm, seed = run.split("/")
            place = tmp_path / f"rates/{arm}/seed{seed}-{hash(text) % 1000}/result.json"
            place.parent.mkdir(parents=True, exist_ok=True)
            record = {
                "arm": arm,
                "seed": int(seed),
                "metrics": {"mlm_loss": loss},
                "sweep_hash": f"{tokens}{rate}{batch}",
            }
            place.write_text(json.dumps(record))
        git("add", "-A")
        git("commit", "-q", "--allow-empty", "-m", "one")

    return one


def told(folder: Path) -> list[str]:
    history = derive_history(folder / "rates", folder / "rates.yaml", folder / "none.yaml", "cpu")
    assert history is not None
    return [line.partition(": ")[2].partition("; ")[2] for line in describe_history(history)]


def test_a_study_that_was_run_once_has_nothing_to_tell(tmp_path: Path, commit: Commit) -> None:
    commit("low/0 high/0")
    commit("low/1 high/1")  # more seeds
    commit("low/0 high/0", batch=16)  # other settings that gave the same numbers: the same runs under another name
    assert told(tmp_path) == []


def test_other_numbers_of_another_sweep_file_are_a_generation(tmp_path: Path, commit: Commit) -> None:
    commit("low/0 high/0")
    commit("low/0", 2.0, tokens=200, rate=0.5, margin=0.2, batch=16)
    commit("high/0", 2.0, tokens=200, rate=0.5, margin=0.2, batch=16)
    first, second = told(tmp_path)
    assert first == ""
    assert second == (
        "changed before it: trainer.max_tokens from 100 to 200, batch.size from 8 to 16, arm high, "
        "claims (1 new or changed, 1 gone)."
    )


def test_a_rerun_from_the_same_file_is_counted(tmp_path: Path, commit: Commit) -> None:
    commit("low/0 high/0")
    commit("low/0", 2.0, rate=0.5)
    commit("low/0", 3.0, rate=0.5)
    assert told(tmp_path)[1].startswith("1 of them trained again")


def test_a_margin_that_is_changed_after_the_first_numbers_is_told(tmp_path: Path, commit: Commit) -> None:
    commit("low/0 high/0")
    commit(margin=0.5)
    assert told(tmp_path) == ["changed after its first numbers: claims (1 new or changed, 1 gone)."]


def test_a_sweep_file_that_was_renamed_has_not_changed(tmp_path: Path, commit: Commit) -> None:
    commit("low/0 high/0")
    subprocess.run(["git", "-C", str(tmp_path), "mv", "rates.yaml", "renamed.yaml"], check=True)
    subprocess.run(["git", "-C", str(tmp_path), "commit", "-q", "-m", "renamed"], check=True)
    history = derive_history(tmp_path / "rates", tmp_path / "renamed.yaml", tmp_path / "none.yaml", "cpu")
    assert history is not None
    assert describe_history(history) == []


def test_a_sweep_file_that_came_after_its_runs_says_nothing_of_changes(tmp_path: Path, commit: Commit) -> None:
    commit("low/0 high/0")
    history = derive_history(tmp_path / "rates", tmp_path / "later.yaml", tmp_path / "none.yaml", "cpu")
    assert history is not None
    assert describe_history(history) == []


def test_without_commits_nothing_is_derived(tmp_path: Path) -> None:
    assert derive_history(tmp_path / "rates", tmp_path / "rates.yaml", tmp_path / "none.yaml", "cpu") is None


def test_it_is_kept_beside_the_table_if_there_is_something_to_tell(tmp_path: Path, commit: Commit) -> None:
    commit("low/0")
    commit("low/0", 2.0, rate=0.5)
    history = derive_history(tmp_path / "rates", tmp_path / "rates.yaml", tmp_path / "none.yaml", "cpu")
    assert history is not None
    write_history(tmp_path / "rates", history)
    assert read_history(tmp_path / "rates") == history
    write_history(tmp_path / "rates", history[:1])
    assert read_history(tmp_path / "rates") == ()


def test_committed_tables_tell_their_history() -> None:
    """A study that was run again, or whose claims were changed after its first numbers, says so in its notes."""
    names, unsaid = set(sweep_file.names()), []
    for place in sorted((ROOT / "analysis/results").glob("*/*/table.json")):
        table, scale = json.loads(place.read_text()), place.parent.parent.name
        name = place.parent.name if place.parent.name in names else table["study"]
        sweep = sweep_file.load(name)
        recipe = conf_dir() / f"recipe/{name_recipe(sweep.family, scale, sweep.recipes.get(scale))}.yaml"
        history = derive_history(place.parent, sweep.path, recipe, scale)
        if history is None:
            pytest.skip("the commits are not all here")
        if missing := [line for line in describe_history(history) if line not in table["notes"]]:
            unsaid.append((f"paribus audit {name} scale={scale} --history", missing))
    assert not unsaid
