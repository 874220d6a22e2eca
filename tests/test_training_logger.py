"""W&B: offline without a key, one deterministic id over interruptions, never in the way of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ceteris.config import compose
from ceteris.errors import UserError
from ceteris.training.logger import Wandb
from ceteris.training.run import run


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))


def test_a_run_is_logged_offline_under_its_signature(arguments: list[str]) -> None:
    folder = run(compose([*arguments, "logger=wandb", "study=s", "arm=a"]))
    record = json.loads((folder / "result.json").read_text())
    assert record["wandb_id"] == record["signature"]
    segments = list(folder.glob(f"wandb/offline-run-*-{record['signature']}"))
    assert len(segments) == 1
    assert (segments[0] / f"run-{record['signature']}.wandb").stat().st_size > 0


def test_a_service_that_cannot_start_does_not_stop_the_run(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import wandb

    def broken(*unused: Any, **named: Any) -> None:
        raise OSError("no service")

    monkeypatch.setattr(wandb, "init", broken)
    folder = run(compose([*arguments, "logger=wandb"]))
    record = json.loads((folder / "result.json").read_text())
    assert record["status"] == "done"
    assert record["wandb_id"] is None
    assert "W&B is off for this run: no service" in capsys.readouterr().err


def test_an_unknown_mode_is_named() -> None:
    with pytest.raises(UserError, match=r"logger\.mode=sometimes"):
        Wandb(mode="sometimes")
