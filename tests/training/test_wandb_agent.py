"""A W&B sweep: its agent starts `paribus train`, and each run is the one that the agent asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_wandb import server

from paribus.commands.run import run
from paribus.commands.train import train
from paribus.core.errors import UserError
from paribus.training.logger import _has_key

STEPS = ["trainer.max_steps=4", "trainer.log_every=1"]


def answers(command: Sequence[str], runs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Of a server whose sweep has this command and hands out these runs, {id: parameters}, one per heartbeat."""
    waiting = [
        {"type": "run", "run_id": name, "program": "", "args": {key: {"value": value} for key, value in own.items()}}
        for name, own in runs.items()
    ]
    config = json.dumps({"command": list(command), "method": "grid"})  # JSON is YAML

    def beat(variables: Mapping[str, Any]) -> dict[str, Any]:
        busy = any(json.loads(variables["runState"]).values())
        given = [] if busy or not waiting else [waiting.pop(0)]
        return {"agentHeartbeat": {"agent": {"id": "agent"}, "commands": json.dumps(given)}}

    sweep = {"id": "x", "name": "sweep1", "state": "RUNNING", "config": config, "runs": {"edges": []}}
    viewer = {"id": "u", "entity": "e", "username": "e", "email": "e@x", "flags": "{}", "teams": {"edges": []}}
    return {
        "Viewer": {"viewer": viewer},
        "ServerFeaturesQuery": {"serverInfo": {"features": []}},
        "GetDefaultEntity": {"viewer": {"id": "u", "entity": "e"}},
        "SweepWithRuns": {"project": {"sweep": sweep}},
        "CreateAgent": {"createAgent": {"agent": {"id": "agent"}}},
        "Heartbeat": beat,
    }


def summary(runs: Path, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(what the segments of an offline run say of it, the last value of each summary key)."""
    head: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for path in sorted(runs.rglob(f"run-{name}.wandb"), key=lambda path: path.stat().st_mtime_ns):
        inspect = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(path.parent)]
        text = subprocess.run(inspect, check=True, capture_output=True, text=True).stdout
        head = head or next(line["run"] for line in map(json.loads, text.splitlines()) if line["type"] == "run")
        told = subprocess.run([*inspect[:-1], "--summary", inspect[-1]], check=True, capture_output=True, text=True)
        found |= json.loads(told.stdout)["summary"]
    return head, found


@pytest.mark.slow  # an agent asks its server every five seconds
def test_an_agent_gets_each_run_under_its_own_id(arguments: list[str], tmp_path: Path, task_folder: Path) -> None:
    task = ["task=sst2", f"tasks.sst2.path={task_folder}"]
    command = [sys.executable, "-m", "paribus", "train", *arguments, *task, *STEPS]
    command += ["logger=wandb", "logger.mode=offline", "${args_no_hyphens}"]
    asked = {"first": {"masking.rate": 0.3}, "second": {"masking.rate": 0.5}, "again": {"masking.rate": 0.3}}
    with server(answers(command, asked)) as (url, questions):
        agent = [sys.executable, "-m", "wandb", "agent", "--count", "3", "e/p/sweep1"]
        keys = {"WANDB_BASE_URL": url, "WANDB_API_KEY": "0" * 40}
        done = subprocess.run(
            agent, env={**os.environ, **keys}, cwd=tmp_path, capture_output=True, text=True, timeout=300
        )
    assert "Heartbeat" in questions, done.stderr
    folders = [path.parent for path in tmp_path.glob("runs/*/*/*/result.json")]
    assert len(folders) == 2, done.stdout + done.stderr
    rates = [yaml.safe_load((folder / "config.yaml").read_text())["masking"]["rate"] for folder in folders]
    records = {
        rate: json.loads((folder / "result.json").read_text()) for rate, folder in zip(rates, folders, strict=True)
    }
    for name, parameters in asked.items():
        head, found = summary(tmp_path / "runs", name)
        assert head["run_id"] == name
        assert found["status"] == "done"
        for column in ("mlm_loss", "sst2/accuracy"):
            assert found[column] == pytest.approx(records[parameters["masking.rate"]]["metrics"][column], rel=1e-9)
    assert {rate: record["wandb_id"] for rate, record in records.items()} == {0.3: "first", 0.5: "second"}


@pytest.mark.parametrize("verb", [run, train])
def test_an_agent_is_refused_several_runs(verb: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_SWEEP_ID", "sweep1")
    monkeypatch.setenv("WANDB_RUN_ID", "first")
    given = {run: ["roberta_table1", "scale=test"], train: ["-m", "scale=test", "seed=1,2"]}[verb]
    with pytest.raises(UserError, match="one run at a time"):
        verb(given)


def test_a_key_for_the_own_server_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    netrc = tmp_path / "netrc"
    netrc.write_text("machine wandb.example.com login user password x\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.delenv("WANDB_BASE_URL", raising=False)
    assert not _has_key()
    monkeypatch.setenv("WANDB_BASE_URL", "https://wandb.example.com/")
    assert _has_key()
