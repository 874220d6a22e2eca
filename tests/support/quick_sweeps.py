"""Sweeps whose runs take no time: each copies a ready record into place."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fake_records import own
from kept_records import record

from paribus.core.files import write_json
from paribus.runs.folder import RECORD
from paribus.sweeps.expand import expand
from paribus.sweeps.request import Request
from paribus.sweeps.sweep import Job
from paribus.training.description import Run

Ask = Callable[..., Request]


SCRIPT = """
import json, sys
from pathlib import Path
source, target, fails = sys.argv[1:4]
assert sys.argv[4:] == ["profile.threads=1"], sys.argv
if Path(fails).exists():
    raise SystemExit("paribus: planted failure: mend it")
Path(target).parent.mkdir(parents=True, exist_ok=True)
Path(target).write_text(Path(source).read_text())
"""


def plan(config: Any) -> dict[str, Any]:
    return {"tokens": 100, "sequences": 10, "steps": 5, "flops": 1.0, "epochs": 1.0}


def made_record(run: Run, **changes: Any) -> dict[str, Any]:
    named = {"study": run.study, "arm": run.arm, "seed": run.seed, "scale": run.scale}
    return record(signature=run.identity.signature, sweep_hash=run.sweep_hash, **{**named, **changes})


class Commands:
    """Command lines of runs that copy a ready record into place, or fail while `<label>.fails` exists."""

    def __init__(self, request: Request, folder: Path, losses: Mapping[str, float] | None = None) -> None:
        self.expanded, self.folder, self.called = expand(request), folder, list[str]()
        self.losses = losses or {}
        folder.mkdir(exist_ok=True)

    def __call__(self, job: Job) -> list[str]:
        self.called.append(job.label)
        identity = self.expanded.identity(job)
        source = self.folder / f"{job.label.replace('/', '-')}.json"
        found = {"own": own(self.losses[job.label])} if job.label in self.losses else {}
        write_json(source, made_record(self.expanded.run_of(job), **found))
        fails = self.flag(job.label)
        return [sys.executable, "-c", SCRIPT, str(source), str(identity.folder / RECORD), str(fails)]

    def flag(self, label: str) -> Path:
        return self.folder / f"{label.replace('/', '-')}.fails"
