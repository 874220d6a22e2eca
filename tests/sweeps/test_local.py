"""Local slots: no barrier, failures that stop no other run, a stop that leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from paribus.core.errors import UserError
from paribus.sweeps.launchers import local
from paribus.sweeps.launchers.base import Ended, Events, Work, failure_reason
from paribus.sweeps.launchers.forks import ForkServer
from paribus.sweeps.launchers.local import Slot, Slots, machine_slots

CORE = sorted(os.sched_getaffinity(0))[0]
SLOT = Slot((CORE,))


def work(folder: Path, name: str, code: str) -> Work:
    return Work(name, (sys.executable, "-S", "-c", code), folder / name / "log.txt")


def run_all(queue: list[Work], slots: list[Slot]) -> list[Ended]:
    over: list[Ended] = []
    Slots(slots).run(queue, Events(ended=over.append))
    return over


def test_a_free_slot_takes_the_next_without_a_barrier(tmp_path: Path) -> None:
    """The long run holds one slot; all short ones pass through the other meanwhile."""
    long = work(tmp_path, "long", "import time; time.sleep(1.2)")
    short = [work(tmp_path, f"short{n}", "pass") for n in range(4)]
    order = [end.work.label for end in run_all([long, *short], [SLOT, SLOT])]
    assert order == ["short0", "short1", "short2", "short3", "long"]


def test_temporary_files_of_killed_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    (left := tmp_path / "tmp" / ".paribus.0123abcd").mkdir()  # of a command that was killed
    code = "import os, tempfile; print(tempfile.mkdtemp()); os.kill(os.getpid(), 9)"
    job = Work("a", (sys.executable, "-c", code), tmp_path / "a" / "log.txt")
    (end,) = run_all([job], [SLOT])
    assert end.status == -9
    place = Path((tmp_path / "a" / "log.txt").read_text().splitlines()[-1])
    assert place.parent.parent == tmp_path / "tmp"
    assert not left.exists()
    assert list((tmp_path / "tmp").iterdir()) == []


def test_one_failure_stops_nobody_and_its_reason_is_its_last_line(tmp_path: Path) -> None:
    jobs = [
        work(tmp_path, "plain", "raise ValueError('the cause')"),
        work(tmp_path, "own", "import sys; print('paribus: no text: give one'); print('later'); sys.exit(2)"),
        work(tmp_path, "killed", "import os; os.kill(os.getpid(), 9)"),
        work(tmp_path, "silent", "import sys; sys.exit(3)"),
        work(tmp_path, "good", "print('fine')"),
    ]
    ends = {end.work.label: end for end in run_all(jobs, [SLOT])}
    assert [ends[job.label].status for job in jobs] == [1, 2, -9, 3, 0]
    assert failure_reason(ends["plain"]) == "ValueError: the cause"
    assert failure_reason(ends["own"]) == "no text: give one"
    assert failure_reason(ends["killed"]).startswith("killed by SIGKILL")
    assert failure_reason(ends["silent"]) == "exit status 3"


def test_the_log_is_appended_and_the_reason_is_of_the_last_try(tmp_path: Path) -> None:
    first, second = work(tmp_path, "run", "raise ValueError('old')"), work(tmp_path, "run", "import sys; sys.exit(4)")
    run_all([first], [SLOT])
    (end,) = run_all([second], [SLOT])
    text = end.work.log.read_text()
    assert text.count("$ ") == 2
    assert "ValueError: old" in text
    assert failure_reason(end) == "exit status 4"


def test_a_slot_gives_cores_threads_and_device(tmp_path: Path) -> None:
    code = (
        "import os; print(os.sched_getaffinity(0), os.environ['OMP_NUM_THREADS'], os.environ['CUDA_VISIBLE_DEVICES'])"
    )
    job = work(tmp_path, "run", f"import time; time.sleep(0.2); {code}")
    run_all([job], [Slot((CORE,), "3")])
    assert job.log.read_text().splitlines()[-1] == f"{{{CORE}}} 1 3"


def test_cores_and_devices_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local.os, "sched_getaffinity", lambda pid: set(range(8)))
    monkeypatch.setattr(local, "gpus", list)
    assert [slot.cores for slot in machine_slots(20)] == [(core,) for core in range(8)]
    assert [slot.cores for slot in machine_slots(3)] == [(0, 1), (2, 3), (4, 5)], "never more slots than runs"
    assert [slot.cores for slot in machine_slots(20, 2)] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    crowded = machine_slots(20, 10)
    assert len(crowded) == 10
    assert {(slot.cores, slot.threads) for slot in crowded} == {(tuple(range(8)), 1)}, "none waits for a busy core"
    assert {slot.device for slot in machine_slots(4)} == {None}
    monkeypatch.setattr(local, "gpus", lambda: ["0", "1"])
    assert [slot.device for slot in machine_slots(20)] == ["0", "1"]
    assert [slot.device for slot in machine_slots(20, 4)] == ["0", "1", "0", "1"], "several runs on one GPU"


def test_visible_devices_are_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    assert local.gpus() == ["2", "5"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert local.gpus() == []


STOPPED = """
import signal
import sys
from pathlib import Path
from paribus.core.processes import Stopped
from paribus.sweeps.launchers.base import Events, Work
from paribus.sweeps.launchers.forks import ForkServer
from paribus.sweeps.launchers.local import Slot, Slots
code = (
    "import pathlib, signal, subprocess, sys, time\\n"
    "def stop(*unused):\\n    pathlib.Path(sys.argv[1] + '.stopped').touch(); sys.exit(0)\\n"
    "signal.signal(signal.SIGTERM, stop)\\n"
    "pathlib.Path(sys.argv[1] + '.started').touch()\\n"
    "time.sleep(60)\\n"
)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background has it ignored
folder = Path(sys.argv[1])
paths = [folder / f"r{n}" for n in (0, 1, 2)]
works = [Work(path.name, (sys.executable, "-S", "-c", code, str(path)), Path(f"{path}.log")) for path in paths]
try:
    Slots([Slot((%d,))] * 2).run(works, Events())
except Stopped:
    print("interrupted")
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_ends_the_running_ones_and_starts_no_other(tmp_path: Path, number: signal.Signals) -> None:
    process = subprocess.Popen([sys.executable, "-c", STOPPED % CORE, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    end = time.monotonic() + 20
    while len(list(tmp_path.glob("*.started"))) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    process.send_signal(number)
    output, _ = process.communicate(timeout=20)
    assert output == "interrupted\n"
    assert sorted(path.name for path in tmp_path.glob("*.stopped")) == ["r0.stopped", "r1.stopped"]
    assert not (tmp_path / "r2.started").exists()


def test_ended_is_called_at_once_and_idle_between(tmp_path: Path) -> None:
    seen: list[str] = []

    def ended(end: Ended) -> None:
        seen.append(end.work.label)

    Slots([SLOT, SLOT]).run(
        [work(tmp_path, "a", "pass"), work(tmp_path, "b", "import time; time.sleep(0.4)")],
        Events(
            started=lambda begun, place: seen.append(f"{begun.label} in {place}"),
            ended=ended,
            idle=lambda: seen.append("idle"),
        ),
    )
    assert seen[:2] == ["a in slot 1 of 2", "b in slot 2 of 2"]
    assert "idle" in seen[seen.index("a") : seen.index("b")]


def test_a_slot_takes_the_next_run_while_another_process_holds_the_first(tmp_path: Path) -> None:
    begun: list[str] = []
    over: list[Ended] = []
    Slots([SLOT]).run(
        [work(tmp_path, name, "pass") for name in ("held", "a", "b")],
        Events(
            started=lambda work, place: begun.append(work.label),
            ended=over.append,
            held=lambda work: work.label == "held" and len(over) < 2,
        ),
    )
    assert begun == ["a", "b", "held"]


def test_work_without_a_command_needs_a_process_that_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ForkServer, "start", lambda *_: None)  # as when the server dies for want of memory
    with pytest.raises(UserError, match="static could not be started: its process died: use fewer slots"):
        Slots([Slot((0,))]).run([Work("static", (), tmp_path / "log.txt", {})], Events())
