"""Hours of small runs: do memory, descriptors, threads or temporary files grow?

python analysis/endurance.py [--hours 2] [--every 60]

Two commands work side by side: a sweep in two slots, whose runs one preloaded process forks, and a multirun, whose runs
follow each other in one process. `analysis/results/endurance.json` gets, per process, a row every `--every`
seconds: {minutes, runs, rss_mb, descriptors, threads, temporary_files}, and how much each grew from the second tenth of
the time to the last: the first is the warm-up. `left_behind` lists processes and temporary files that remain after both
commands are stopped.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import yaml
from chaos import ROOT, SWEEP, at_smoke, prepare

from paribus.core.console import progress, say
from paribus.core.files import write_json
from paribus.core.settings import Profile
from paribus.runs.provenance import git_state
from paribus.training.profile import resolve

RESULTS = ROOT / "analysis" / "results" / "endurance.json"
RUNS = 4500  # more than two hours hold
GROWN = ("rss_mb", "descriptors", "threads", "temporary_files")


class Watched:
    """A command, the process of it that does the work or forks it, and what was seen of that."""

    def __init__(self, name: str, place: Path, arguments: list[str], forks: bool) -> None:
        self.name, self.forks, self.rows = name, forks, list[dict[str, Any]]()
        self.temporary, self.runs = place / f"{name}-tmp", place / f"{name}-runs"
        self.temporary.mkdir()
        environment = {**os.environ, "TMPDIR": str(self.temporary), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "paribus", *arguments, f"paths.runs={self.runs}"]
        with (place / f"{name}.log").open("w") as log:
            self.process = psutil.Popen(command, stdout=log, stderr=log, env=environment, cwd=place)

    def look(self, minutes: float) -> None:
        """Add a row, unless all runs are done. Raises RuntimeError if the command has failed."""
        if (status := self.process.poll()) is not None:
            if status:
                raise RuntimeError(f"{self.name} ended with status {status} after {minutes:.1f} minutes")
            return
        with suppress(psutil.NoSuchProcess):  # a run ended in the meantime
            servers = [child for child in self.process.children() if "forks" in " ".join(child.cmdline())]
            if own := self.process if not self.forks else next(iter(servers), None):
                self._add_row(own, minutes)

    def _add_row(self, own: psutil.Process, minutes: float) -> None:
        self.rows.append(
            {
                "minutes": round(minutes, 1),
                "runs": sum(1 for _ in self.runs.rglob("result.json")),
                "rss_mb": round(own.memory_info().rss / 2**20, 1),
                "descriptors": own.num_fds(),
                "threads": own.num_threads(),
                "temporary_files": sum(1 for _ in self.temporary.rglob("*")),
            }
        )

    def stop(self) -> list[str]:
        """Stop the command as a user does; returns what it leaves behind."""
        family = self.process.children(recursive=True)
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        _, alive = psutil.wait_procs(family, timeout=10)
        files = [str(path.relative_to(self.temporary)) for path in self.temporary.rglob("*")]
        return [*(f"process {process.pid}" for process in alive), *files]

    def figures(self, left: list[str]) -> dict[str, Any]:
        """What the result file says of this command. Raises RuntimeError if it was never seen at work."""
        if not self.rows:
            raise RuntimeError(f"{self.name} was never seen at work: raise --hours")
        tenth = max(1, len(self.rows) // 10)
        early, late = self.rows[tenth : 2 * tenth] or self.rows, self.rows[-tenth:]
        grew = {
            key: round(statistics.median(r[key] for r in late) - statistics.median(r[key] for r in early), 1)
            for key in GROWN
        }
        return {"process": self.name, "grew": grew, "left_behind": left, "rows": self.rows}


def main() -> None:
    """Start both commands, look at them until the time is over, stop them, and write what was seen."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--every", type=float, default=60.0)
    given = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="paribus-endurance-"))
    overrides = [text for text in prepare(place) if not text.startswith("paths.runs=")]
    short = ["trainer.max_steps=2", "finetune.epochs=1"]
    (place / "endurance.yaml").write_text(yaml.safe_dump(SWEEP, sort_keys=False))
    own = [*at_smoke(overrides), "trainer.max_steps=2", f"paths.cache={place / 'cache'}"]
    seeds = f"seeds=range(0,{RUNS // 3})"
    commands = [
        Watched("sweep", place, ["run", str(place / "endurance.yaml"), *own, seeds, "slots=2"], True),
        Watched(
            "multirun",
            place,
            ["train", "-m", "hydra.sweeper.max_batch_size=50", *overrides, *short, f"seed=range(0,{RUNS})"],
            False,
        ),
    ]
    start = time.monotonic()
    try:
        for _ in progress(range(max(1, round(given.hours * 3600 / given.every))), "watching", unit="look"):
            time.sleep(given.every)
            for command in commands:
                command.look((time.monotonic() - start) / 60)
    finally:
        left = {command.name: command.stop() for command in commands if command.process.poll() is None}
    found = [command.figures(left.get(command.name, [])) for command in commands]
    write_json(RESULTS, {"git": git_state(), "profile": resolve(Profile(threads=1)).record(), "processes": found})
    for seen in found:
        say(f"{seen['process']}: {seen['rows'][-1]['runs']} runs, grew {seen['grew']}")
    shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
