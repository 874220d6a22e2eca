"""Workers of a search as processes: killed at random moments, or four at once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import optuna
from optuna.trial import TrialState

from paribus.sweeps.search.ledger import KIND, OVERRIDES, RETRY_OF
from paribus.sweeps.search.storage import open_storage

WORKER = Path(__file__).with_name("search_worker.py")


def worker(url: str, trials: int, log: Path, seconds: float) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(WORKER), url, str(trials), str(log), str(seconds)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)


def trials_of(url: str) -> list[optuna.trial.FrozenTrial]:
    return optuna.load_study(study_name="s", storage=open_storage(url)).trials


def starts_of(log: Path) -> Counter[str]:
    """How often each set of parameters was finished by a job."""
    return Counter(text[4:] for text in log.read_text().splitlines() if text.startswith("end "))


def check_whole(url: str, trials: int) -> None:
    """So many different trials complete, every dead one followed by one successor with its parameters, none RUNNING."""
    found = trials_of(url)
    complete = [trial for trial in found if trial.state == TrialState.COMPLETE]
    assert len(complete) == trials
    assert len({tuple(trial.user_attrs[OVERRIDES]) for trial in complete}) == trials
    assert all(trial.state.is_finished() for trial in found)
    died = {trial.number: trial for trial in found if trial.user_attrs.get(KIND) == "died"}
    followed = [trial.user_attrs[RETRY_OF] for trial in found if RETRY_OF in trial.user_attrs]
    assert sorted(followed) == sorted(died), "each is followed once"
    for trial in found:
        if RETRY_OF in trial.user_attrs:
            assert trial.params == died[trial.user_attrs[RETRY_OF]].params


def kill_often(url: str, folder: Path, kills: int, trials: int) -> None:
    """kill -9 at random moments after the first trial began, then let one worker end the study."""
    log, moments = folder / "log", random.Random(0)
    for _ in range(kills):
        process = worker(url, trials, log, 0.05)
        before = len(log.read_text().splitlines()) if log.is_file() else 0
        while process.poll() is None and (len(log.read_text().splitlines()) if log.is_file() else 0) <= before:
            time.sleep(0.005)
        time.sleep(moments.uniform(0, 0.5))
        process.kill()
        process.wait()
    assert worker(url, trials, log, 0.0).wait(120) == 0
    check_whole(url, trials)


def share(url: str, folder: Path) -> None:
    """Four workers: each set of parameters is run once, none is left."""
    workers = [worker(url, 40, folder / "log", 0.05) for _ in range(4)]
    assert [process.wait(200) for process in workers] == [0] * 4
    check_whole(url, 40)
    assert set(starts_of(folder / "log").values()) == {1}
