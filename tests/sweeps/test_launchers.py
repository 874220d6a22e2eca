"""Launchers: the choice, one of your own, Ray, and a real Slurm cluster that preempts and requeues jobs."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import slurm_server

from paribus.commands.cli import main
from paribus.core.build import build
from paribus.core.config import compose_launcher
from paribus.core.errors import UserError
from paribus.runs import store
from paribus.sweeps.launchers import local, slurm
from paribus.sweeps.launchers.base import Demand, Events, Submitted, Work
from paribus.sweeps.launchers.local import Local, machine_slots
from paribus.sweeps.request import parse
from paribus.sweeps.run import run_sweep


def test_the_launcher_is_a_choice_of_its_group_and_no_override_of_the_arms() -> None:
    request = parse("run", ["roberta_table1", "launcher=slurm", "launcher.partition=long", "seed=1"])
    assert request.launcher == ("launcher=slurm", "launcher.partition=long")
    assert request.overrides == ()
    chosen = build(compose_launcher(request.launcher))
    assert isinstance(chosen, slurm.Slurm)
    assert chosen.partition == "long"
    assert isinstance(build(compose_launcher([])), Local)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("launcher=cloud", "unknown choice launcher=cloud: known: local, ray, slurm"),
    ],
)
def test_an_unknown_launcher_or_setting_is_one_line(override: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        compose_launcher([override])


TOY = """
from pathlib import Path
from paribus.sweeps.launchers.base import Ended, Launcher, Pool, RemoteRun

class Toy(Launcher):
    remote = True
    def __init__(self, notes):
        self.notes = Path(notes)
    def open(self, demand):
        return Queue(self.notes, demand.size())

class Queue(Pool):
    threads = 1
    def __init__(self, notes, size):
        self.notes, self.size = notes, size
    def run(self, queue, events):
        for work in queue:
            events.started(work, "a toy")
            status = RemoteRun(work.label, work.config)()
            self.notes.open("a").write(f"{work.label} {status}\\n")
            events.ended(Ended(work, status, 1.0))
"""


def test_a_launcher_of_your_own_is_one_class_and_one_yaml_file(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "toy_launcher.py").write_text(TOY)
    (tmp_path / "conf" / "launcher").mkdir(parents=True)
    (tmp_path / "conf" / "launcher" / "toy.yaml").write_text("_target_: toy_launcher.Toy\nnotes: none.txt\n")
    (tmp_path / "conf" / "trusted.yaml").write_text("trusted: [toy_launcher]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    own = ["launcher=toy", "launcher.notes=notes.txt", "seeds=0", "arms=dynamic", "task=none", "logger=none"]
    given = [text for text in arguments if not text.startswith("paths.runs=")]
    assert main(["run", "roberta_table1", *given, *own, "runs=runs"]) == 0
    assert (tmp_path / "notes.txt").read_text() == "dynamic/seed0 0\n"
    said = capfd.readouterr().err
    assert "▶ dynamic/seed0 started in a toy" in said
    assert "1/1 done (0 found, 1 new)" in said


def test_gpus_go_to_a_slot_as_many_as_a_run_has_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "gpus", lambda: ["0", "1", "2", "3", "4"])
    assert [slot.device for slot in machine_slots(9, ranks=2)] == ["0,1", "2,3"]
    with pytest.raises(UserError, match=r"profile.ranks=8 is above the number of GPUs, 5"):
        machine_slots(9, ranks=8)
    monkeypatch.setattr(local, "gpus", list)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert len(machine_slots(9, 1, ranks=8)) == 1
    with pytest.raises(UserError, match=r"profile.ranks=9 is above 4 for each of 2 cores: lower profile.ranks"):
        machine_slots(9, ranks=9)


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["joblib", "submitit_local"])
def test_hydras_launchers_take_the_arms_of_a_sweep_and_hand_errors_back(
    arguments: list[str], tmp_path: Path, launcher: str
) -> None:
    pytest.importorskip(f"hydra_plugins.hydra_{launcher.partition('_')[0]}_launcher")

    def train(*own: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "paribus", "train", "-m", f"hydra/launcher={launcher}", *arguments, *own]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=dict(os.environ), timeout=300)

    sweep = ["hydra/sweeper=arms", "sweep=roberta_table1", "seed=0", "arm=static_x10,dynamic", "task=none"]
    done = train(*sweep, "logger=none")
    assert done.returncode == 0, done.stderr
    found = store.find_records("roberta_table1", "test", [tmp_path / "runs"])
    assert [made.arm for made in found.records] == ["dynamic", "static_x10"]
    bad = train("masking.rate=0.15,7", "task=none", "logger=none")
    assert bad.returncode == 2
    assert "paribus: " in bad.stderr
    assert "Traceback" not in bad.stderr
    assert len(store.find_records("single", "test", [tmp_path / "runs"]).records) == 1, "the other job was run"


class FakeJob:
    """What submitit hands out, with a result that a test sets."""

    def __init__(self, folder: Path, number: str) -> None:
        from submitit.core.utils import JobPaths

        self.job_id, self.paths, self.value = number, JobPaths(folder, number), 0

    def over(self, value: int) -> None:
        self.value = value
        self.paths.result_pickle.parent.mkdir(exist_ok=True)
        self.paths.result_pickle.touch()

    def result(self) -> int:
        return self.value


@pytest.fixture
def looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Looks at the queue, one after the other, as what is told of the one job that there is."""
    pytest.importorskip("submitit")
    said: list[str] = []
    job = FakeJob(tmp_path, "7_0")
    running: list[Submitted] = [slurm._Job(Work("dynamic/seed0", (), tmp_path / "log.txt"), job, 0.0)]
    events = Events(
        lambda work, where: said.append(f"started in {where}"),
        lambda work: said.append("requeued"),
        lambda end: said.append(f"ended {end.status}"),
        lambda: None,
    )
    jobs = slurm.SlurmPool(None, 1, None, 0.0)  # type: ignore[arg-type]

    def look(state: dict[str, str] | None, result: int | None = None) -> list[str]:
        if result is not None:
            job.over(result)
        monkeypatch.setattr(slurm, "queue_states", lambda: state)
        running[:] = jobs.poll(running, events)
        return said

    return look


def test_a_job_that_is_preempted_waits_and_starts_again(looks: Callable[..., list[str]]) -> None:
    assert looks({"7_0": "PENDING"}) == []
    assert looks({"7_0": "RUNNING"}) == ["started in Slurm job 7_0"]
    assert looks({"7_0": "COMPLETING"}, result=2)[1:] == [], "it may have failed because it was preempted"
    assert looks({"7_0": "PENDING"})[1:] == ["requeued"]
    assert looks({"7_0": "RUNNING"})[2:] == ["started in Slurm job 7_0"]
    assert looks({"7_0": "RUNNING"}, result=0)[3:] == ["ended 0"]


def test_a_job_that_leaves_without_a_result_is_lost_but_not_while_slurm_is_silent(
    looks: Callable[..., list[str]],
) -> None:
    for _ in range(5):
        assert looks(None) == []
    assert looks({}) == []
    assert looks({}) == ["ended -9"]


def test_a_failure_counts_once_the_queue_has_let_the_job_go(looks: Callable[..., list[str]]) -> None:
    looks({"7_0": "RUNNING"}, result=2)
    assert looks({})[1:] == []
    assert looks({})[1:] == ["ended 2"]


def test_no_job_is_submitted_twice_while_slurm_is_silent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("submitit")
    monkeypatch.setattr(slurm, "queue_states", lambda: None)
    (tmp_path / slurm.TICKET).write_text("7_0\n")
    jobs = slurm.SlurmPool(None, 1, None, 0.0)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="squeue does not answer"):
        jobs.submit(deque([Work("dynamic/seed0", (), tmp_path / "log.txt")]), 0)


def test_without_slurm_it_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("submitit")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="the command srun is missing"):
        slurm.Slurm().open(Demand(2, None, 1, tmp_path))
    assert slurm.queue_states() is None


def test_without_ray_it_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"launcher=ray needs ray: pip install 'paribus\[ray\]'"):
        build(compose_launcher(["launcher=ray"])).open(Demand(2, None, 1, tmp_path))


@pytest.mark.slow
def test_a_sweep_on_ray_ends_with_the_numbers_of_this_machine(
    arguments: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ray")
    short = ("trainer.max_steps=4",)
    local = request_of(arguments, tmp_path, "local", *short)
    assert run_sweep(local) == 0
    capfd.readouterr()
    far = request_of(arguments, tmp_path, "ray", *short, "launcher=ray", "launcher.poll_seconds=0.2", "slots=1")
    assert run_sweep(far) == 0
    assert capfd.readouterr().err.count("in a Ray task") == 2
    assert numbers(far) == numbers(local)
    bad = request_of(arguments, tmp_path, "bad", *short, "launcher=ray", "profile.precision=8-wrong")
    assert run_sweep(bad) == 1
    assert "profile.precision=8-wrong is unknown" in capfd.readouterr().err


@pytest.fixture(scope="module")
def cluster() -> Iterator[Path]:
    """A cluster of one node, of which every command of the test takes its answers."""
    pytest.importorskip("submitit")
    if (why := slurm_server.missing()) is not None:
        pytest.skip(why)
    with slurm_server.server() as folder:
        yield folder


def scontrol(*words: str) -> None:
    subprocess.run(["scontrol", *words], check=True, capture_output=True)


class Preemption(threading.Thread):
    """Takes the node from the first job that has a checkpoint, by `stop`, and then lets it start at once again."""

    def __init__(self, runs: Path, stop: Callable[[str], None]) -> None:
        super().__init__(daemon=True)
        self.runs, self.stop = runs, stop
        self.taken: str | None = None
        self.resumed = False

    def run(self) -> None:
        end = time.monotonic() + 300
        while time.monotonic() < end and not self.resumed:
            time.sleep(0.1)
            states = slurm.queue_states() or {}
            if self.taken is None:
                self._take(states)
            elif states.get(self.taken) == "PENDING":
                time.sleep(2)  # so that the runner sees it wait
                scontrol("update", f"JobId={self.taken}", "StartTime=now")
                self.resumed = True

    def _take(self, states: dict[str, str]) -> None:
        for ticket in self.runs.rglob(slurm.TICKET):
            number = ticket.read_text().strip()
            if states.get(number) == "RUNNING" and (ticket.parent / "last.ckpt").is_file():
                self.taken = number
                self.stop(number)
                return


def request_of(arguments: list[str], tmp_path: Path, name: str, *more: str) -> Any:
    given = [text for text in arguments if not text.startswith("paths.runs=")]
    own = [f"runs={tmp_path / name}", "task=none", "seeds=0", "arms=static_x10,dynamic", "logger=none"]
    own += ["trainer.max_steps=300", "profile.checkpoint_steps=5", "evaluation.points=1"]
    return parse("run", ["roberta_table1", *given, *own, *more])._replace(results=tmp_path / "results")


def numbers(request: Any) -> dict[str, Any]:
    """What the table is made of: {arm: metrics and budget, without seconds}."""
    found = store.find_records(request.study_name, request.scale, request.roots)
    assert found.left_out == []
    return {run.arm: [run.status, run.metrics, run.budget["input_tokens"], run.signature] for run in found.records}


@pytest.mark.slurm
@pytest.mark.parametrize("signal", ["requeue", "USR2"])
def test_a_sweep_is_preempted_queued_again_and_ends_with_the_right_numbers(
    cluster: Path, arguments: list[str], tmp_path: Path, signal: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """`requeue`: the cluster takes the node and queues the job; `USR2`: it warns, and submitit queues it."""
    local = request_of(arguments, tmp_path, "local")
    assert run_sweep(local) == 0
    expected = numbers(local)
    capfd.readouterr()

    far = request_of(
        arguments, tmp_path, "slurm", "launcher=slurm", f"launcher.partition={slurm_server.PARTITION}",
        "launcher.cpus=1", "launcher.poll_seconds=0.3",
    )  # fmt: skip

    def stop(number: str) -> None:
        if signal == "requeue":
            scontrol("requeue", number)
        else:
            subprocess.run(["scancel", number, f"--signal={signal}"], check=True)

    preemption = Preemption(tmp_path / "slurm", stop)
    preemption.start()
    assert run_sweep(far) == 0
    preemption.join(timeout=5)
    assert preemption.resumed
    said = capfd.readouterr().err
    assert "is back in the queue" in said
    assert said.count("in Slurm job") == 3, "two jobs, one of which started twice"
    assert numbers(far) == expected
    assert run_sweep(far) == 0
    assert "2/2 done (2 found, 0 new)" in capfd.readouterr().err
