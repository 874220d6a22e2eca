"""The processes that measure the arms of a plan: they end with the command, which passes on what they say."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from paribus.sweeps.plan import _pass_on

ORDERLY = {signal.SIGINT: 130, signal.SIGTERM: 143}


def members(session: int) -> list[int]:
    """The processes of a session that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, own = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:  # it has just ended
            continue
        if int(own) == session and state != "Z":
            found.append(int(stat.parent.name))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("count", [2, 4])  # the command and a server that loads libraries; two forks as well
def test_a_plan_that_ends_leaves_no_process(
    number: signal.Signals, count: int, arguments: list[str], tmp_path: Path
) -> None:
    given = [text for text in arguments if not text.startswith("paths.runs=")]
    command = [sys.executable, "-m", "paribus", "plan", "roberta_table1", *given, "seeds=0", "slots=2"]
    plan = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    end = time.monotonic() + 120
    while len(members(plan.pid)) < count and plan.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    assert plan.poll() is None
    (os.killpg if number == signal.SIGINT else os.kill)(plan.pid, number)
    _, said = plan.communicate(timeout=60)
    assert "Traceback" not in said
    if number in ORDERLY:
        assert plan.returncode == ORDERLY[number]
        assert f"paribus: stopped by {number.name}" in said
    while members(plan.pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert not members(plan.pid)


def test_what_a_measuring_process_says_is_passed_on_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs, heard = [tmp_path / "0.log", tmp_path / "1.log"], Counter[Path]()
    logs[0].write_text("$ \nreading the docstrings (once)\nhalf a li")
    _pass_on(logs, heard)
    assert capsys.readouterr().err == "reading the docstrings (once)\n"
    with logs[0].open("a") as log:
        log.write("ne\nparibus: a setting is wrong\n")
    _pass_on(logs, heard)
    _pass_on(logs, heard)
    assert capsys.readouterr().err == "half a line\n", "an error is the command's"
