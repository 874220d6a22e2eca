"""What a search costs beside its jobs: overhead a trial, loading 10,000 trials, idle slots with jobs of unequal length.

The jobs sleep, or do nothing; everything else is the real sweeper's. Bounds: 150 ms, 3 s, 5 %.
"""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from turns import Row, main

from paribus.sweeps.search.ledger import OVERRIDES, WORKER
from paribus.sweeps.search.settings import Settings
from paribus.sweeps.search.space import dimension
from paribus.sweeps.search.worker import open_study, search

NAMES = {
    "overhead_ms": "a trial beyond its job",
    "overhead_cpu_ms": "a trial beyond its job, processor time",
    "load_seconds": "loading 10,000 trials",
    "idle_share": "idle slots while trials are left",
    "idle_share_with_the_end": "idle slots over the whole study",
}
UNITS = {name: name.rpartition("_")[2] if name.endswith(("ms", "seconds")) else "" for name in NAMES}
BOUNDS = {"overhead_ms": 150.0, "load_seconds": 3.0, "idle_share": 0.05}


class Jobs:
    """Sleeps as long as the trial's number says; remembers when jobs ran."""

    def __init__(self, lengths: list[float]) -> None:
        self.lengths, self.lock = lengths, threading.Lock()
        self.spans: list[tuple[float, float]] = []

    def launch(self, batch: list[list[str]], initial_job_idx: int) -> list[Any]:
        begin = time.perf_counter()
        time.sleep(self.lengths[initial_job_idx % len(self.lengths)])
        with self.lock:
            self.spans.append((begin, time.perf_counter()))
        value = float(batch[0][0].partition("=")[2])
        return [SimpleNamespace(_return_value=value, return_value=value)]


def settings(folder: Path, trials: int, jobs: int, sampler: str = "TPESampler") -> Settings:
    """A search of x in [0, 1] with a journal."""
    return Settings(
        space={"x": dimension("x", "interval(0, 1)")}, fixed=(), directions=("minimize",), objectives=(),
        url=f"journal:{folder}/journal.log", study="s", folder=folder, signature="a", trials=trials, jobs=jobs,
        sampler={"_target_": f"optuna.samplers.{sampler}"}, pruner=None, seeds=(), retries=0, max_failure_rate=0.0,
        timeout=None, resume=True, conditional=None, reports=False,
    )  # fmt: skip


def overhead(folder: Path, trials: int = 100) -> dict[str, float]:
    """Milliseconds a trial beyond its job, one after the other with TPE; and those of the processor alone."""
    jobs, start, used = Jobs([0.0]), time.perf_counter(), time.process_time()
    search(settings(folder, trials, 1), jobs)  # type: ignore[arg-type]  # it only launches
    wall = time.perf_counter() - start - sum(end - begin for begin, end in jobs.spans)
    return {"overhead_ms": 1000 * wall / trials, "overhead_cpu_ms": 1000 * (time.process_time() - used) / trials}


def load(folder: Path, trials: int = 10_000) -> dict[str, float]:
    """Seconds until a worker knows a study of so many trials."""
    from optuna.distributions import FloatDistribution
    from optuna.trial import create_trial

    ledger, draw = open_study(settings(folder, trials, 1)), random.Random(0)
    kept = {WORKER: "elsewhere:1:2", "seconds": 60.0, "sampler_seed": 0}
    for _ in range(trials):
        x = draw.random()
        own = {**kept, OVERRIDES: [f"x={x}"], "values": [[x]]}
        made = create_trial(params={"x": x}, distributions={"x": FloatDistribution(0, 1)}, value=x, user_attrs=own)
        ledger.study.add_trial(made)
    start = time.perf_counter()
    assert open_study(settings(folder, trials, 1)).counts().complete == trials
    return {"load_seconds": time.perf_counter() - start}


def idle(folder: Path, trials: int = 40, slots: int = 2) -> dict[str, float]:
    """Share of the slots' time in which a slot has no job: while trials are left to claim, and over the whole study.

    At the end of the whole, a slot waits for the last trial of the others whatever a sweeper does.
    """
    draw = random.Random(0)
    jobs = Jobs([draw.uniform(0.5, 3.5) for _ in range(trials)])
    search(settings(folder, trials, slots), jobs)  # type: ignore[arg-type]
    begin = min(span[0] for span in jobs.spans)
    ends = sorted(end for _, end in jobs.spans)

    def share(last: float) -> float:
        busy = sum(min(end, last) - start for start, end in jobs.spans if start < last)
        return 1 - busy / (slots * (last - begin))

    return {"idle_share": share(ends[-slots]), "idle_share_with_the_end": share(ends[-1])}


def rows() -> list[Row]:
    """Each measurement beside its bound."""
    found: dict[str, float] = {}
    for measure in (overhead, load, idle):
        with tempfile.TemporaryDirectory() as folder:
            found |= measure(Path(folder))
    return [Row(f"search: {NAMES[key]}", value, UNITS[key], most=BOUNDS.get(key)) for key, value in found.items()]


if __name__ == "__main__":
    sys.exit(main(rows, __doc__))
