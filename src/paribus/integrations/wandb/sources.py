"""Three sources of runs: our records, offline W&B runs, and a W&B server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from paribus.core.errors import UserError
from paribus.integrations.wandb.frames import OVER, LoggedRun, StageLog, join_stages, pick_numbers
from paribus.runs.manifest import find_manifest
from paribus.runs.store import find_records, find_stored
from paribus.runs.wandb_tracker import BUDGET, FINETUNE, PRETRAIN, TRIAL, group_of

_STAGES = (PRETRAIN, TRIAL, FINETUNE)


@dataclass(frozen=True)
class Records:
    """Our own records and metrics.jsonl, below these roots."""

    roots: Sequence[Path]

    def runs(self, study: str, scale: str) -> Iterator[LoggedRun]:
        for record in find_records(study, scale, self.roots).records:
            if record.status in OVER:
                run = find_stored(record, self.roots)
                rows = run.read_curve_lines(record) if run else []
                curve = {
                    (name, int(row["step"])): value
                    for row in rows
                    for name, value in pick_numbers(row).items()
                    if name != "step"
                }
                spent = {f"{BUDGET}{name}": value for name, value in record.budget.items()}
                values = pick_numbers({**record.metrics, **spent}) if record.done else {}
                yield LoggedRun(record.arm, record.seed, record.signature, record.status, values, curve)


class Segment(NamedTuple):
    """What one process wrote of a W&B run. `head`: its id, name, group, job type and start; `exit`: None if it did not
    end by itself.
    """

    head: Mapping[str, str]
    log: StageLog
    exit: int | None = None


@dataclass(frozen=True)
class Offline:
    """The W&B files of runs below these roots, read by `wandb leet inspect`; nothing is uploaded."""

    roots: Sequence[Path]

    def runs(self, study: str, scale: str) -> list[LoggedRun]:
        """Raises UserError for a file that W&B cannot read."""
        paths = [path for root in self.roots for path in (root / study).glob("*/seed*/wandb/*run-*/run-*.wandb")]
        segments = [read_segment(path) for path in sorted(paths)]
        stages: dict[str, StageLog] = {}
        for head, log, _ in sorted(segments, key=lambda segment: segment.head.get("start_time", "")):
            if head.get("run_group") == group_of(study, scale) and head.get("job_type") in _STAGES:
                stage = stages.setdefault(head["run_id"], StageLog())
                stage.config |= log.config
                stage.summary |= log.summary
                stage.history += log.history
        return join_stages(list(stages.values()), find_manifest(self.roots, study, scale))


def read_segment(path: Path) -> Segment:
    """What a `.wandb` file holds. Raises UserError if W&B cannot read it."""
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(path)]
    printed = subprocess.run(command, capture_output=True, text=True, check=False)
    if printed.returncode:
        raise UserError(f"W&B cannot read {path}", " ".join(printed.stderr.split())[-200:] or "remove the file")
    head: dict[str, Any] = {}
    log, status = StageLog(), None
    for text in printed.stdout.splitlines():
        line = json.loads(text)
        kind, content = line["type"], line.get(line["type"], {})
        if kind == "run":
            head = content
        if kind in ("run", "config"):
            log.config |= (content if kind == "config" else content.get("config", {})).get("update", {})
        elif kind == "summary":
            log.summary |= content.get("update", {})
        elif kind == "history":
            log.history.append(content["item"])
        elif kind == "exit":
            status = int(content.get("exit_code", 0))
    return Segment(head, log, status)


@dataclass(frozen=True)
class Online:
    """A W&B server. W&B finds the key.

    Args:
        entity: None: the user's own.
        base_url: None: W&B's own server, or WANDB_BASE_URL.
        roots: whose manifest says which runs belong together; without a manifest, all runs of the group do.
    """

    project: str = "paribus"
    entity: str | None = None
    base_url: str | None = None
    roots: Sequence[Path] = ()

    def runs(self, study: str, scale: str) -> list[LoggedRun]:
        """Raises UserError if the server cannot be reached."""
        import wandb

        try:
            api = wandb.Api(overrides={"base_url": self.base_url} if self.base_url else {})
            path = f"{self.entity or api.default_entity}/{self.project}"
            runs = api.runs(path, filters={"group": group_of(study, scale)}, per_page=100, lazy=False)
            stages = [
                StageLog(dict(run.config), dict(run.summary_metrics), list(run.scan_history(use_cache=False)))
                for run in runs
                if run.job_type in _STAGES
            ]
        except Exception as error:  # the client and its transport raise many kinds
            raise UserError(
                f"W&B cannot be reached ({' '.join(str(error).split())[:200]})", "check your key and the network"
            ) from error
        return join_stages(stages, find_manifest(self.roots, study, scale))
