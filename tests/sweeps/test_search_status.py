"""`paribus status` of a search: what each trial does, the best of them, what is left."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import optuna
import pytest
from search_worker import Launcher, settings

from paribus.commands.cli import main
from paribus.commands.run import run
from paribus.core.arguments import parse
from paribus.sweeps.request import search_request_of
from paribus.sweeps.search.ledger import TrialCounts
from paribus.sweeps.search.status import SearchStatus, TrialRow, status_reader
from paribus.sweeps.search.worker import open_study, search
from paribus.sweeps.sweep_file import search_names


class Mixed:
    """x below 0.3 is pruned, above 0.8 fails, else it is done after 1,000 tokens."""

    def launch(self, batch: list[list[str]], initial_job_idx: int) -> list[Any]:
        x = float(batch[0][0].partition("=")[2])
        error = ValueError("no good") if x > 0.8 else optuna.TrialPruned("at step 3") if x < 0.3 else None
        return [SimpleNamespace(_return_value=error, return_value={"loss": x, "input_tokens": 1000})]


def test_the_board_has_every_state_of_a_trial(tmp_path: Path) -> None:
    url = f"journal:{tmp_path}/j"
    own = settings(url, 12, tmp_path, objectives=("loss",), max_failure_rate=1.0)
    search(own, Mixed())
    ledger = open_study(settings(url, 14, tmp_path))
    ledger.worker = ledger.worker.rpartition(":")[0] + ":0"  # a process of this machine that never was
    assert ledger.claim() is not None
    status = status_reader(tmp_path)()
    assert {row.state for row in status.rows} == {"done", "pruned", "failed", "stale"}
    assert status.count("stale") == 1
    done = next(row for row in status.rows if row.state == "done")
    assert done.tokens == 1000
    assert float(done.parameters["x"]) == done.values[0]
    text = status.text()
    assert "12/12 done" in text
    assert "1 stale" in text
    assert "ValueError: no good" in text
    best = min(row.values[0] for row in status.rows if row.state == "done")
    assert f"loss {best:.6g}" in text
    assert "importance for loss: x 100%" in text


def test_several_objectives_show_their_front(tmp_path: Path) -> None:
    class Two:
        def launch(self, batch: list[list[str]], initial_job_idx: int) -> list[Any]:
            x = float(batch[0][0].partition("=")[2])
            return [SimpleNamespace(_return_value=None, return_value=(x, 1 - x if x < 0.5 else 2.0))]

    search(settings(f"journal:{tmp_path}/j", 8, tmp_path, directions=("minimize", "minimize")), Two())
    below = status_reader(tmp_path)().below()
    assert below[1] == "Pareto front of the objectives:"
    front = [float(line.partition("x=")[2]) for line in below[2:-2]]
    assert below[-2:] == ["importance for value: x 100%", "importance for value 2: x 100%"]
    assert front == sorted(front)
    assert all(x < 0.5 for x in front)


def test_what_is_left_counts_what_is_under_way() -> None:
    def row(number: int, state: str, seconds: float) -> TrialRow:
        return TrialRow(number, state, (), None, seconds, {}, "")

    rows = [row(0, "done", 100.0), row(1, "pruned", 60.0), row(2, "running", 40.0), row(3, "running", 0.0)]
    status = SearchStatus("s", 10, ("loss",), rows, TrialCounts(1, 1, 0, 2))
    assert status.seconds_left() == pytest.approx(80 * (10 - 2 - 0.5) / 2)
    assert SearchStatus("s", 10, ("loss",), rows[2:]).seconds_left() is None


def test_status_takes_a_folder_and_a_search_and_says_what_has_not_begun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], refusal: Callable[..., str]
) -> None:
    search(settings(f"journal:{tmp_path}/j", 2, tmp_path), Launcher(tmp_path / "log", 0))
    assert main(["status", str(tmp_path)]) == 0
    assert "2/2 done" in capsys.readouterr().out
    assert main(["status", "optuna_lr", "scale=test", f"runs={tmp_path}"]) == 0
    assert "not started" in capsys.readouterr().out
    assert "slots=many" in refusal("run", "optuna_lr", "slots=many")
    assert "slots=0" in refusal("run", "optuna_lr", "slots=0", f"runs={tmp_path}")


def test_status_is_live_in_a_terminal_and_ends_when_nothing_runs(tmp_path: Path) -> None:
    search(settings(f"journal:{tmp_path}/j", 2, tmp_path), Launcher(tmp_path / "log", 0))
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm", "COLUMNS": "100"}
    command = [sys.executable, "-m", "paribus", "status", str(tmp_path)]
    with subprocess.Popen(command, env=environment, stdout=theirs, stderr=theirs, stdin=theirs) as process:
        assert process.wait(60) == 0
    shown = os.read(ours, 65536).decode()
    assert "2/2 done" in shown
    assert "\x1b[" in shown, "in color"


def test_every_shipped_search_is_a_name(tmp_path: Path) -> None:
    assert {"optuna_lr", "optuna_recipe", "optuna_pareto"} <= set(search_names())
    for name in search_names():
        asked = search_request_of(parse(run, [name, "scale=test", f"runs={tmp_path}", "slots=2"]))
        assert asked is not None
        assert asked.slots == 2
        assert asked.folder == tmp_path / f"{name}-test.search"
    assert search_request_of(parse(run, ["roberta_table1"])) is None
