"""What an execution profile chooses by itself."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch

from paribus.core.settings import Profile
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
    monkeypatch.setenv("OMP_NUM_THREADS", variable)
    assert resolve(Profile(accelerator="cpu", threads=asked, ranks=ranks)).threads == threads
    assert torch.get_num_threads() == threads
