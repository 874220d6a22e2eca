"""Signals to a run: a checkpoint, one line and a status of its own within seconds; orphans end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, suppress
from io import StringIO
from pathlib import Path

import pytest
import torch

from paribus.commands.cli import main
from paribus.core.config import compose, plain
from paribus.core.processes import SIGNALS, Stopped, asked_to_stop, die_with_parent, patient, stoppable
from paribus.runs.folder import read_last_step
from paribus.sweeps.launchers.slurm import _SlurmRun

LONG = ["trainer.max_steps=1000000", "trainer.max_epochs=null", "trainer.log_every=1", "evaluation.points=1"]
SECONDS = 5.0


def wait_for(reached: object, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not reached() and time.monotonic() < end:  # type: ignore[operator]
        time.sleep(0.02)


def steps_of(root: Path) -> int:
    return max((read_last_step(path.parent) for path in root.rglob("metrics.jsonl")), default=0)


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Signals that whoever started the tests ignores (nohup, a background job) would be ignored by their runs too."""
    usual = dict.fromkeys(SIGNALS, signal.SIG_DFL) | {signal.SIGINT: signal.default_int_handler}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def stop_process(command: list[str], root: Path, number: int) -> tuple[int, str, float]:
    """The status of a command that gets a signal after some steps, what it said, and the seconds until it ended."""
    process = subprocess.Popen([sys.executable, "-m", "paribus", *command], stderr=subprocess.PIPE, text=True)
    wait_for(lambda: steps_of(root) >= 3)
    begin = time.monotonic()
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    return process.returncode, said, time.monotonic() - begin


def stop_here(command: list[str], root: Path, number: int) -> tuple[int, str, float]:
    """The same in this process, which needs no seconds to start."""
    begun, ended = list[float](), threading.Event()

    def send() -> None:
        wait_for(lambda: steps_of(root) >= 3 or ended.is_set())
        if not ended.is_set():
            begun.append(time.monotonic())
            os.kill(os.getpid(), number)

    sender = threading.Thread(target=send)
    sender.start()
    said = StringIO()
    try:
        with redirect_stderr(said):
            status = main(command)
    finally:
        ended.set()
        sender.join()
    return status, said.getvalue(), time.monotonic() - begun[0]


@pytest.mark.parametrize("number", SIGNALS)
def test_a_stopped_run_has_a_checkpoint_and_says_so(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(sys, "argv", sys.argv)
    stop = stop_process if number == signal.SIGTERM else stop_here
    own = [*LONG, "task=none", "logger=none", "profile.checkpoint_seconds=null"]
    status, said, seconds = stop(["train", *arguments, *own], tmp_path, number)
    assert seconds < SECONDS
    assert status == 128 + number
    name = signal.Signals(number).name
    assert [line for line in said.splitlines() if "paribus: " in line] == [
        f"paribus: stopped by {name}; run the same command again to resume"
    ]
    assert "Traceback" not in said
    (last,) = tmp_path.rglob("last.ckpt")
    assert torch.load(last, weights_only=True)["global_step"] == steps_of(tmp_path)


@pytest.mark.slow
def test_a_job_that_submitit_is_warned_of_has_a_checkpoint_before_it_is_queued_again(
    arguments: list[str], tmp_path: Path
) -> None:
    submitit = pytest.importorskip("submitit")
    own = [*LONG, "task=none", "logger=none", "profile.checkpoint_seconds=null"]
    config = plain(compose([*arguments, *own]))
    executor = submitit.LocalExecutor(tmp_path / "jobs")
    executor.update_parameters(timeout_min=60)
    job = executor.submit(_SlurmRun("one/seed0", config))
    try:
        wait_for(lambda: steps_of(tmp_path) >= 3)
        (task,) = Path(f"/proc/{job.job_id}/task/{job.job_id}/children").read_text().split()
        os.kill(int(task), signal.SIGUSR2)  # as Slurm does some time before the end
        wait_for(lambda: "Requeued job" in (tmp_path / "jobs" / f"{job.job_id}_0_log.out").read_text(), 60)
        (last,) = tmp_path.rglob("last.ckpt")
        reached = torch.load(last, weights_only=True)["global_step"]
        assert reached >= 3
        wait_for(lambda: steps_of(tmp_path) > reached + 3)
        assert steps_of(tmp_path) > reached + 3, "the job resumes"
    finally:
        job.cancel(check=False)


def test_who_handles_signals_keeps_them() -> None:
    heard: list[int] = []
    before = {number: signal.signal(number, lambda own, _: heard.append(own)) for number in (15, signal.SIGUSR2)}
    try:
        with stoppable():
            os.kill(os.getpid(), signal.SIGTERM)
        assert heard == [signal.SIGTERM]
        with pytest.raises(Stopped), stoppable():
            hear(signal.SIGUSR2, seconds=30)
        assert heard == [signal.SIGTERM, signal.SIGUSR2]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def hear(*numbers: int, seconds: float) -> None:
    """What a process does that gets these signals at once."""
    for number in numbers:
        os.kill(os.getpid(), number)
    time.sleep(seconds)


def test_a_step_that_takes_too_long_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paribus.core.processes.PATIENCE", 0.2)
    begin = time.monotonic()
    with pytest.raises(Stopped, match="SIGTERM"), stoppable(), patient():
        hear(signal.SIGTERM, signal.SIGTERM, seconds=30)  # a second one does not cut the step short
    assert 0.2 <= time.monotonic() - begin < 10
    with stoppable(), patient():
        hear(signal.SIGUSR1, seconds=0)
        assert asked_to_stop() == signal.SIGUSR1
        time.sleep(0.5)  # whoever has asked may save in peace
    with pytest.raises(Stopped) as caught, stoppable():
        hear(signal.SIGHUP, seconds=30)
    assert caught.value.status == 128 + signal.SIGHUP


def test_no_signal_comes_after_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paribus.core.processes.PATIENCE", 0.1)
    with stoppable(), patient():
        hear(signal.SIGHUP, seconds=0)
        assert asked_to_stop() == signal.SIGHUP
    late: list[int] = []
    signal.signal(signal.SIGHUP, lambda number, _: late.append(number))
    time.sleep(0.5)
    assert not late


def test_what_the_caller_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stoppable():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


ORPHAN = f"""
import os, subprocess, sys, time
from functools import partial
from {die_with_parent.__module__} import {die_with_parent.__name__}
bound = partial({die_with_parent.__name__}, os.getpid())
child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"], preexec_fn=bound)
print(child.pid, flush=True)
time.sleep(60)
"""


def test_a_child_ends_whose_parent_was_gone_before_it_asked() -> None:
    code = f"from paribus.core.processes import die_with_parent; die_with_parent({os.getpid()}); print(1)"
    outlived = code.replace(str(os.getpid()), str(os.getpid() + 1))
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
    assert subprocess.run([sys.executable, "-c", outlived], capture_output=True).returncode == -signal.SIGTERM


def test_a_child_ends_with_a_parent_that_is_killed() -> None:
    parent = subprocess.Popen([sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()

    def gone() -> bool:
        with suppress(OSError):
            return Path(f"/proc/{child}/stat").read_text().split()[2] == "Z"
        return True

    wait_for(gone, 10)
    assert gone()
