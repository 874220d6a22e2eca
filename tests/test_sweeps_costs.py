"""The processes that measure the arms of a plan end with the command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

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
