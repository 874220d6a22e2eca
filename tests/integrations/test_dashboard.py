"""Dashboards as code: built and validated without a server, saved only when asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paribus.commands.dashboard import dashboard
from paribus.integrations.wandb.dashboard import Board, report, workspace, written
from paribus.sweeps.sweep_file import load, names

pytest.importorskip("wandb_workspaces", reason="the extra `dashboards` is not installed")


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "wrong")
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))


@pytest.mark.parametrize("name", names())
def test_every_sweep_has_a_workspace_and_a_report(name: str) -> None:
    sweep = load(name)
    board = Board(sweep, "smoke", sweep.study)
    shown, told = json.dumps(written(workspace(board))), json.dumps(written(report(board)))
    for text in (shown, told):
        assert f"{name}-smoke" in text
        assert all(column in text for column in sweep.columns)
    assert all(json.dumps(claim)[1:-1] in told for claim in sweep.claims)
    assert ("Search of the arms" in shown) == (sweep.tune_at("smoke") is not None)


def test_curves_are_drawn_by_arm_over_the_optimizer_s_steps() -> None:
    sweep = load("roberta_table1")
    (plot, *_) = [one for one in _configs(written(workspace(Board(sweep, "smoke", sweep.study)))) if "xAxis" in one]
    assert plot["xAxis"] == "trainer/global_step"
    assert plot["metrics"] == ["validation/mlm_loss"]
    assert "arm" in json.dumps(plot["groupBy"])


def _configs(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [found for item in value for found in _configs(item)]
    if not isinstance(value, dict):
        return []
    own = [value["config"]] if isinstance(value.get("config"), dict) else []
    return own + [found for item in value.values() for found in _configs(item)]


def test_the_verb_writes_and_does_not_upload(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dashboard(["roberta_table1", "scale=smoke", f"out={tmp_path}"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["wandb_report.json", "wandb_workspace.json"]
    assert "nothing was uploaded" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["roberta_table1", "--save"], "W&B cannot save the dashboard"),
        (["roberta_table1", "--force"], "no flag '--force'"),
        (["roberta_table1", "color=red"], "no option 'color='"),
        (["roberta_table1", "scale=huge"], "huge"),
        ([], "needs a SWEEP"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    given: list[str], said: str, tmp_path: Path, refusal: Callable[..., str]
) -> None:
    out = [f"out={tmp_path}"] if given else []
    assert said in refusal("dashboard", *given, *out)
