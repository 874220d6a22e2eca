"""Searches: nothing is lost or run twice, whatever dies; failed, pruned, refused."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState
from search_processes import kill_often, share, starts_of, trials_of
from search_worker import Launcher, settings

from paribus.core.errors import UserError
from paribus.sweeps.search.ledger import ATTEMPT, REASON
from paribus.sweeps.search.space import dimension
from paribus.sweeps.search.storage import open_storage, without_password
from paribus.sweeps.search.worker import open_study, search


def test_a_killed_worker_loses_no_trial(tmp_path: Path) -> None:
    kill_often(f"journal:{tmp_path}/j", tmp_path, 1, 8)


@pytest.mark.slow
def test_twenty_kills_lose_no_trial_and_double_none(tmp_path: Path) -> None:
    kill_often(f"journal:{tmp_path}/j", tmp_path, 20, 150)


@pytest.mark.slow
def test_four_workers_share_a_journal(tmp_path: Path) -> None:
    share(f"journal:{tmp_path}/j", tmp_path)


class Fails:
    """Fails for x > 0.5, with a pruned trial below 0.2."""

    def launch(self, batch: list[list[str]], initial_job_idx: int) -> list[Any]:
        x = float(batch[0][0].partition("=")[2])
        error = ValueError("no good") if x > 0.5 else optuna.TrialPruned("at step 3") if x < 0.2 else None
        return [SimpleNamespace(_return_value=error, return_value=x)]


def test_failed_trials_keep_their_reason_and_their_parameters(tmp_path: Path) -> None:
    url = f"journal:{tmp_path}/j"
    with pytest.raises(UserError, match="trials of s failed"):
        search(settings(url, 8, tmp_path, retries=2), Fails())
    found = trials_of(url)
    failed = [trial for trial in found if trial.state == TrialState.FAIL]
    assert failed
    assert {trial.user_attrs[REASON] for trial in failed} == {"ValueError: no good"}
    assert set(Counter(trial.params["x"] for trial in failed).values()) == {3}, "the first and two more"
    assert {trial.user_attrs.get(ATTEMPT, 0) for trial in failed} == {0, 1, 2}
    pruned = [trial for trial in found if trial.state == TrialState.PRUNED]
    assert pruned
    assert all(trial.params["x"] < 0.2 for trial in pruned)
    assert len({trial.params["x"] for trial in found}) == 8, "retries do not count"


def test_a_study_goes_on_to_more_trials_and_refuses_another_space(tmp_path: Path) -> None:
    url, log = f"journal:{tmp_path}/j", tmp_path / "log"
    assert search(settings(url, 3, tmp_path), Launcher(log, 0)).complete == 3
    assert search(settings(url, 5, tmp_path), Launcher(log, 0)).complete == 5
    assert len(trials_of(url)) == 5
    with pytest.raises(UserError, match="another search space"):
        open_study(settings(url, 6, tmp_path, signature="b"))
    with pytest.raises(UserError, match="has trials"):
        open_study(settings(url, 6, tmp_path, resume=False))
    assert open_study(settings(url, 6, tmp_path, signature="b", resume="force")).trials == 6


def test_a_finite_space_is_run_once_and_then_over(tmp_path: Path) -> None:
    space = {"x": dimension("x", "choice(0.1, 0.2, 0.3, 0.4)")}
    url = f"journal:{tmp_path}/j"
    counts = search(settings(url, 50, tmp_path, space=space), Launcher(tmp_path / "log", 0))
    assert counts.complete == 4
    assert set(starts_of(tmp_path / "log").values()) == {1}


def test_draws_follow_from_the_seed_alone(tmp_path: Path) -> None:
    drawn = []
    for name in ("one", "two"):
        url = f"sqlite:///{tmp_path}/{name}.db" if name == "two" else f"journal:{tmp_path}/{name}"
        search(settings(url, 2, tmp_path), Launcher(tmp_path / "log", 0))
        search(settings(url, 4, tmp_path), Launcher(tmp_path / "log", 0))
        drawn.append([trial.params["x"] for trial in trials_of(url)])
    assert drawn[0] == drawn[1], "the same through a restart and in another storage"


@pytest.mark.parametrize(
    ("given", "clean", "secret"),
    [
        ("postgresql://me:s%40cret@host:5/db", "postgresql://me@host:5/db", "s@cret"),
        ("postgres://me:a@b/c@host/db", "postgres://me@host/db", "a@b/c"),
        ("x.storage='postgresql+psycopg://me:s@h/db'", "x.storage='postgresql+psycopg://me@h/db'", "s"),
        ("postgresql://h/db?user=me&password=s3&sslmode=require", "postgresql://h/db?user=me&&sslmode=require", "s3"),
        ("postgresql://me@host/db", "postgresql://me@host/db", None),
        ("proxy=http://host:8080/a@b", "proxy=http://host:8080/a@b", None),
    ],
)
def test_no_url_keeps_a_password(given: str, clean: str, secret: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)
    assert without_password(given) == clean
    assert os.environ.get("PGPASSWORD") == secret


def test_an_unknown_storage_is_refused_without_its_password() -> None:
    with pytest.raises(UserError, match="is not supported") as refused:
        open_storage("mysql://me:open-sesame@host/db")
    assert "open-sesame" not in str(refused.value)
