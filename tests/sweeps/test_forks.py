"""Runs forked from a process that has imported the training: they are what `paribus train` in a fresh process is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from paribus.core.config import compose, plain
from paribus.runs.folder import read_last_step, read_state
from paribus.sweeps.launchers.base import Ended, Events, Work, failure_reason
from paribus.sweeps.launchers.forks import ForkOrder, ForkServer
from paribus.sweeps.launchers.local import Slot, Slots
from paribus.training.description import Run

CORE = sorted(os.sched_getaffinity(0))[0]
SHORT = ("trainer.max_steps=4", "trainer.max_epochs=null", "task=none", "logger=none")

TOLD = """
import os
import torch
from paribus.data.corpus.text import Text

class Told(Text):
    def source(self):
        print("cores", sorted(os.sched_getaffinity(0)), "device", os.environ["CUDA_VISIBLE_DEVICES"])
        print("threads", torch.get_num_threads(), os.environ["OMP_NUM_THREADS"])
        return super().source()
"""


def work(config: dict[str, Any], label: str) -> Work:
    return Work(label, ("paribus", "train"), Run.of(config).identity.folder / "log.txt", config)


def weights(run: Path) -> bytes:
    return (run / "model" / "model.safetensors").read_bytes()


def test_forks_have_the_bits_the_record_the_cores_and_the_failures_of_fresh_processes(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "told.py").write_text(TOLD)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "trusted.yaml").write_text("trusted: [told]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    forked = plain(compose([*arguments, *SHORT, f"paths.runs={tmp_path / 'forked'}"]))
    broken = plain(compose([*arguments, *SHORT, "profile.precision=8-wrong", "seed=1"]))
    telling = plain(compose([*arguments, *SHORT, "trainer.max_steps=1", "seed=2"]))
    telling["corpus"]["_target_"] = "told.Told"
    over: list[Ended] = []
    cores = tuple(sorted(os.sched_getaffinity(0))[:2])
    last = Work("telling", ("paribus",), tmp_path / "log.txt", telling)  # without an identity, which reads the corpus
    jobs = [work(forked, "good"), work(broken, "broken"), last]
    Slots([Slot(cores, "3")]).run(jobs, Events(ended=over.append))
    good, bad, told = over
    said = told.work.log.read_text()
    assert [good.status, bad.status, told.status] == [0, 2, 0], said
    assert failure_reason(bad).startswith("profile.precision=8-wrong is unknown")
    assert good.work.log.read_text().startswith("$ paribus train\n")
    assert f"cores {list(cores)} device 3" in said
    assert f"threads {len(cores)} {len(cores)}\n" in said
    assert f"threads 1 {len(cores)}\n" in said, "once the profile has set its own"
    fresh = [sys.executable, "-m", "paribus", "train", *arguments, *SHORT]
    subprocess.run(fresh, check=True, capture_output=True, cwd=tmp_path)
    (other,) = (path.parent for path in (tmp_path / "runs").glob("single/run/seed0-*/result.json"))
    assert weights(other) == weights(good.work.log.parent)
    records = [json.loads((folder / "result.json").read_text()) for folder in (other, good.work.log.parent)]
    for key in ("signature", "metrics", "baselines", "profile", "versions", "data"):
        assert records[0][key] == records[1][key]


LONG = """
import json, sys
from pathlib import Path
from paribus.core.processes import Stopped
from paribus.sweeps.launchers.base import Events, Work
from paribus.sweeps.launchers.local import Slot, Slots
config = json.loads(Path(sys.argv[1]).read_text())
try:
    Slots([Slot((%d,))]).run([Work("long", ("paribus",), Path(sys.argv[2]), config)], Events())
except Stopped:
    print("interrupted")
"""


@pytest.fixture
def long(arguments: list[str], tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A pool in its own process, with a run that has trained some steps and would train for hours, and its log."""
    steps = ("trainer.max_steps=1000000", "trainer.max_epochs=null", "trainer.log_every=1", "evaluation.points=1")
    config = plain(compose([*arguments, *steps, "task=none", "logger=none", "profile.checkpoint_steps=2"]))
    folder = Run.of(config).identity.folder
    (tmp_path / "config.json").write_text(json.dumps(config))
    code = [sys.executable, "-c", LONG % CORE, str(tmp_path / "config.json"), str(folder / "log.txt")]
    process = subprocess.Popen(code, stdout=subprocess.PIPE, text=True)
    end = time.monotonic() + 120
    while read_last_step(folder) < 3 and time.monotonic() < end:
        time.sleep(0.05)
    yield process, folder / "log.txt"
    with suppress(ProcessLookupError):
        process.kill()
    process.wait()


def test_a_stop_lets_a_fork_end_by_itself(long: tuple[subprocess.Popen[str], Path]) -> None:
    process, log = long
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert output == "interrupted\n"
    assert read_state(log.parent)[0] == "stopped"
    assert (log.parent / "last.ckpt").is_file()
    said = "paribus: stopped by SIGTERM; run the same command again to resume\n"
    first, *told, last = log.read_text().splitlines(keepends=True)
    assert (first, last) == ("$ paribus\n", said)
    assert all(line.startswith("tokenizing") for line in told), "no traceback"


def test_forks_end_with_a_pool_that_is_killed(long: tuple[subprocess.Popen[str], Path]) -> None:
    process, log = long
    assert read_state(log.parent)[0] == "running"
    process.kill()
    end = time.monotonic() + 60
    while read_state(log.parent)[0] == "running" and time.monotonic() < end:
        time.sleep(0.05)
    assert read_state(log.parent)[0] == "stopped"


@pytest.mark.slow
def test_a_server_that_dies_takes_its_runs_along_and_the_next_run_has_another(
    arguments: list[str], tmp_path: Path
) -> None:
    slow = plain(compose([*arguments, *SHORT[1:], "trainer.max_steps=1000000"]))
    quick = plain(compose([*arguments, *SHORT, "seed=1"]))
    over: list[Ended] = []
    pool = Slots([Slot((CORE,))])

    def die(begun: Work, place: str) -> None:
        if begun.label == "slow":
            assert isinstance(pool.server, ForkServer)
            pool.server.process.kill()

    pool.run([work(slow, "slow"), work(quick, "quick")], Events(started=die, ended=over.append))
    assert [(end.work.label, end.status) for end in over] == [("slow", -9), ("quick", 0)]
    assert failure_reason(over[0]) == (
        "killed by SIGKILL, perhaps out of memory: a smaller profile.microbatch or fewer slots need less"
    )


def test_a_number_that_the_system_gives_again_is_a_new_process(tmp_path: Path) -> None:
    server = ForkServer({})
    try:
        (tmp_path / "log.txt").touch()
        order = ForkOrder({}, Work("", (), tmp_path).call, tmp_path / "log.txt", (CORE,), {})
        first = server.start(order)
        assert first is not None
        assert first.wait() != 0, "the config is empty"
        real, asked = server.connection, [first.pid]

        class Reused:
            def send(self, order: ForkOrder) -> None:
                pass

            def recv(self) -> int:
                return asked.pop()

            def poll(self) -> bool:
                return False

        server.connection = Reused()  # type: ignore[assignment]
        again = server.start(order)
        server.connection = real
        assert again is not None
        assert again.poll() is None
    finally:
        server.close()


def test_a_failure_without_a_log_or_with_an_unnamed_signal_has_a_reason(tmp_path: Path) -> None:
    gone = Work("a/seed0", (), tmp_path / "none.txt")
    assert failure_reason(Ended(gone, 3, 0.0)) == "exit status 3"
    assert failure_reason(Ended(gone, -40, 0.0)) == "killed by signal 40"


ALONE = """
import os, sys
from paribus.sweeps.launchers.forks import preload
preload()
import torch
print(len(os.listdir("/proc/self/task")), torch.cuda.is_initialized())
from paribus.training.run import run
import json
before = set(sys.modules)
run(json.loads(sys.argv[1]))
print(*(name for name in set(sys.modules) - before if name.split(".")[0] in %r))
"""
HEAVY = (
    "torch", "pytorch_lightning", "lightning_fabric", "transformers", "torchmetrics", "wandb", "tokenizers",
    "requests", "urllib3",
)  # fmt: skip


@pytest.mark.slow  # a module that is not preloaded makes runs start later; all that they do is tested above
def test_the_preloaded_process_has_all_heavy_modules_one_thread_and_no_device(
    arguments: list[str], task_folder: Path
) -> None:
    config = plain(compose([*arguments, *SHORT[:2], "task=sst2", f"tasks.sst2.path={task_folder}"]))
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", ALONE % (HEAVY,), json.dumps(config)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    alone, new = done.stdout.splitlines()
    assert alone == "1 False"
    assert len(new.split()) < 3, new
