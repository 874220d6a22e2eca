"""A study in PostgreSQL: workers that die, four workers at once, and the password nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import postgres_server
import pytest
from search_processes import kill_often, share
from search_worker import Launcher, settings

from paribus.sweeps.search.storage import STALE, without_password
from paribus.sweeps.search.worker import open_study, search

pytestmark = pytest.mark.postgres


@pytest.fixture
def url() -> Iterator[str]:
    pytest.importorskip("psycopg")
    if why := postgres_server.missing():
        pytest.skip(why)
    with postgres_server.server() as secret, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPASSWORD", "")
        yield without_password(secret)


def test_twenty_kills_lose_no_trial_and_double_none(url: str, tmp_path: Path) -> None:
    kill_often(url, tmp_path, 20, 150)


def test_four_workers_share_a_study(url: str, tmp_path: Path) -> None:
    share(url, tmp_path)


def test_the_password_is_in_no_file_and_no_attribute(url: str, tmp_path: Path) -> None:
    search(settings(url, 2, tmp_path), Launcher(tmp_path / "log", 0))
    study = open_study(settings(url, 2, tmp_path)).study
    kept = [str(study.user_attrs), *(str(trial) for trial in study.trials)]
    kept += [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert postgres_server.SECRET not in " ".join([url, *kept])


def test_a_lease_that_does_not_change_is_of_a_dead_worker(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker of another machine is judged by its lease alone, on this machine's clock."""
    storage, other = open_study(settings(url, 2, tmp_path)).storage, "elsewhere:1:2"
    now = 1000.0
    monkeypatch.setattr("paribus.sweeps.search.storage.time.monotonic", lambda: now)
    storage.renew(other)
    assert storage.alive(other)
    now += STALE - 1
    assert storage.alive(other)
    storage.renew(other)
    now += 2
    assert storage.alive(other)
    now += STALE + 1
    assert not storage.alive(other)
