"""What an execution profile chooses by itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from paribus.core.processes import THREADS
from paribus.core.settings import Profile
from paribus.training import distributed
from paribus.training.profile import resolve


@pytest.fixture
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("asked", "variable", "ranks", "threads"),
    [(None, "", 1, 8), (None, "", 2, 4), (None, "3", 1, 3), (2, "3", 1, 2), (None, "0", 1, 8), (None, "many", 2, 4)],
)
def test_the_threads_are_those_asked_for_then_those_of_the_environment_then_all_cores(
    asked: int | None, variable: str, ranks: int, threads: int, eight_cores: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(THREADS, variable)
    assert resolve(Profile(accelerator="cpu", threads=asked, ranks=ranks)).threads == threads
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("given", [None, "3"])
def test_a_run_of_several_processes_leaves_the_environment_as_it_was(
    given: str | None, eight_cores: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A later run of this process would take its threads for the user's."""
    seen = []

    def start(*_: Any, **__: Any) -> SimpleNamespace:
        seen.append(os.environ[THREADS])
        return SimpleNamespace(poll=lambda: None, kill=lambda: None, wait=lambda: 0)

    monkeypatch.setattr(distributed.subprocess, "Popen", start)
    monkeypatch.delenv(THREADS, raising=False)
    if given is not None:
        monkeypatch.setenv(THREADS, given)
    profile = resolve(Profile(accelerator="cpu", ranks=2))
    with distributed.helpers(tmp_path, profile):
        assert seen == [str(profile.threads)] == [given or "4"]
    assert os.environ.get(THREADS) == given
