"""The time around training: starts, a sweep of 12 runs, the demo, and commands that find everything done.

The runs are those of roberta_table1 at scale=smoke; all but the demo's are without tasks. A first run fills the caches.
A start lasts from the command, or from a run's launch in the sweep, to the first line of its learning curve.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from turns import Row, main

SWEEP = ["roberta_table1", "scale=smoke"]
RUN = ["task=none", "trainer.log_every=1"]
SLOTS, SEEDS = 2, 4  # of three arms each
POLL = 0.005


def rows(turns: int = 3) -> list[Row]:
    """Each time beside its target."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _start_once(folder, 0)
        single = statistics.median(_start_once(folder, turn) for turn in range(1, turns + 1))
        seen: dict[Path, float] = {}
        sweep = ["run", *SWEEP, *RUN, f"seeds=range(0,{SEEDS})", f"slots={SLOTS}", "runs=bare"]
        wall = _time(folder, sweep, lambda: _look(folder, seen))
        later = _later_starts(seen)
        trained = sum(_train_seconds(path) for path in folder.glob("bare/roberta_table1/*/*/result.json"))
        run, table = ["run", *SWEEP, f"slots={SLOTS}"], ["table", *SWEEP]
        demo = _time(folder, run) + _time(folder, table)
        found, shown = (statistics.median(_time(folder, verb) for _ in range(turns)) for verb in (run, table))
    return [
        Row("start of a single run", single, "s", most=3.0),
        Row("start of a later run of a sweep", later, "s", most=0.5),
        Row("12 smoke runs: wall time / training time over slots", wall / (trained / SLOTS), "x", most=1.1),
        Row("the demo, install aside and text prepared", demo, "s", most=240.0),
        Row("`paribus table` of a finished sweep", shown, "s", most=2.0),
        Row("a second demo", found + shown, "s", most=2.0),
    ]


def _start_once(folder: Path, seed: int) -> float:
    """Seconds from the command of a run of a few steps to its first line."""
    seen: dict[Path, float] = {}
    start = time.time()
    short = ["scale=smoke", "trainer.max_steps=4", "trainer.max_epochs=null", "evaluation.points=1", f"seed={seed}"]
    _time(folder, ["train", *RUN, *short], lambda: _look(folder, seen))
    return next(at for path, at in seen.items() if path.name == "metrics.jsonl" and f"seed{seed}-" in str(path)) - start


def _later_starts(seen: dict[Path, float]) -> float:
    """The median over the runs after the first of each slot."""
    launched = sorted(path for path in seen if path.name == "log.txt" and "roberta_table1" in path.parts)
    ordered = sorted(launched, key=seen.__getitem__)[SLOTS:]
    return statistics.median(seen[path.with_name("metrics.jsonl")] - seen[path] for path in ordered)


def _look(folder: Path, seen: dict[Path, float]) -> None:
    """Note when the files were first there."""
    for name in ("log.txt", "metrics.jsonl"):
        for path in folder.glob(f"*/*/*/seed*/{name}"):
            seen.setdefault(path, time.time())


def _time(folder: Path, arguments: list[str], look: Callable[[], None] = lambda: None) -> float:
    """Seconds of a command; `look` is called while it runs. Raises CalledProcessError if it fails."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "paribus", *arguments]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None:
        look()
        time.sleep(POLL)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return time.perf_counter() - start


def _train_seconds(path: Path) -> float:
    return float(json.loads(path.read_text(encoding="utf-8"))["budget"]["train_seconds"])


if __name__ == "__main__":
    sys.exit(main(rows, __doc__, turns=3))
