"""A worker of a study with a cheap objective: `search_worker.py URL TRIALS JOURNAL-OF-RUNS SECONDS`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from paribus.sweeps.search.settings import Settings
from paribus.sweeps.search.space import dimension
from paribus.sweeps.search.worker import search


class Launcher:
    """Runs (x - 0.3)^2 and writes a line before and after each."""

    def __init__(self, log: Path, seconds: float) -> None:
        self.log, self.seconds = log, seconds

    def launch(self, batch: list[list[str]], initial_job_idx: int) -> list[Any]:
        (overrides,) = batch
        x = float(overrides[0].partition("=")[2])
        self._write(f"start {overrides[0]}")
        time.sleep(self.seconds)
        self._write(f"end {overrides[0]}")
        return [SimpleNamespace(_return_value=None, return_value=(x - 0.3) ** 2)]

    def _write(self, text: str) -> None:
        with self.log.open("a", encoding="ascii") as file:
            file.write(f"{text}\n")


def settings(url: str, trials: int, folder: Path, **changed: Any) -> Settings:
    """A search of x in [0, 1]."""
    plain: dict[str, Any] = {
        **{
            "space": {"x": dimension("x", "interval(0, 1)")},
            "fixed": (),
            "directions": ("minimize",),
            "objectives": (),
        },
        **{
            "url": url,
            "study": "s",
            "folder": folder,
            "signature": "a",
            "trials": trials,
            "jobs": 1,
            "reports": False,
            "objectives": (),
        },
        **{"sampler": {"_target_": "optuna.samplers.RandomSampler"}, "pruner": None, "seeds": (), "retries": 0},
        **{"max_failure_rate": 0.0, "timeout": None, "resume": True, "conditional": None},
    }
    return Settings(**(plain | changed))


if __name__ == "__main__":
    url, trials, log, seconds = sys.argv[1:]
    search(settings(url, int(trials), Path(log).parent), Launcher(Path(log), float(seconds)))
