"""What a run says of its progress where nobody watches a bar."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from quick_sweeps import Ask, Commands, plan

from paribus.commands.cli import main
from paribus.core import console
from paribus.sweeps import run
from paribus.sweeps.run import run_sweep
from paribus.sweeps.status import SweepStatus, show_live
from paribus.sweeps.sweep import Job
from paribus.training import callbacks
from paribus.training.callbacks import Bar


def steps_of(bar: Bar, count: int, first: int = 0) -> None:
    trainer: Any = SimpleNamespace(global_step=first)
    module: Any = SimpleNamespace(last={"losses": {"mlm": 6.4554}, "counts": {"input_tokens": 500}})
    bar.on_train_start(trainer, module)
    for _ in range(count):
        trainer.global_step += 1
        bar.after_step(trainer, module)
    bar.on_train_end(trainer, module)


def test_a_line_has_phase_step_loss_speed_and_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr(callbacks.time, "monotonic", lambda: float(next(clock)))
    steps_of(Bar("r15/seed0 pre-training", 2000), 7)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "r15/seed0 pre-training: step 3 of 2,000, mlm_loss 6.455, 50 tokens/s, about 5.5 h left",
        "r15/seed0 pre-training: step 6 of 2,000, mlm_loss 6.455, 50 tokens/s, about 5.5 h left",
    ]
    steps_of(Bar("a resumed run", 100), 3, first=50)
    assert "step 53 of 100, mlm_loss 6.455, 50 tokens/s, about 8 min left" in capsys.readouterr().err


def test_a_quick_run_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    steps_of(Bar("r15/seed0 pre-training", 5), 5)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_shows_everything_in_its_width(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(callbacks, "watched", lambda: True)
    monkeypatch.setattr(callbacks, "tqdm", partial(callbacks.tqdm, ncols=width, mininterval=0.0))
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr(callbacks, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    steps_of(Bar("rate_0.15/seed0 pre-training", 2000), 7)
    shown = capsys.readouterr().err.split("\r")
    assert max(map(len, shown)) <= width
    assert any(
        re.search("^rate_0.15/seed0 pre-training: 7/2000, .* left, mlm_loss 6.455, 50 tokens/s", x) for x in shown
    )


def test_no_bar_moves_below_a_live_board(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert console.watched()
    status = SweepStatus("a sweep", [Job("study", "r15", 0, ())], "mlm_loss")
    with show_live(status):
        assert status.live is not None
        steps_of(Bar("r15/seed0 pre-training", 5), 5)
        assert list(console.progress([1, 2], "reading")) == [1, 2]
    assert console.watched()
    shown = capsys.readouterr().err
    assert "r15" in shown
    assert "pre-training" not in shown
    assert "reading" not in shown


def test_a_sweep_names_its_metric_and_passes_on_what_its_runs_say(
    ask: Ask,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(run, "EVERY", 0.0)
    request = ask("seeds=0", "slots=2", "arms=dynamic,static")
    commands = Commands(request, tmp_path / "made")
    said = "dynamic/seed0 pre-training: step 3 of 9, mlm_loss 6.455, 50 tokens/s, about 8 min left"

    def slow(job: Any) -> list[str]:
        python, flag, script, *rest = commands(job)
        return [python, flag, f"print('{said}', flush=True); import time; time.sleep(3)\n{script}", *rest]

    assert run_sweep(request, plan=plan, command=slow) == 0
    lines = capfd.readouterr().err.splitlines()
    assert f"{said}; static/seed0 runs; 0/2 done, 2 running" in lines
    assert any("✓ dynamic/seed0 done in" in line and ": mlm_loss 5.000 [" in line for line in lines)


@pytest.mark.parametrize(
    "argv", [["--version"], ["-V"], ["train", "--version"], ["run", "roberta_table1", "--version"]]
)
def test_the_version_is_ours(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    assert capsys.readouterr().out.startswith("paribus ")
