"""Three places that runs are read from: our records, offline W&B runs, a W&B server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from paribus.core.errors import UserError
from paribus.reporting.tracking.runs import OVER, Run, Told, joined, numbers
from paribus.runs.stages import BUDGET, FINETUNE, PRETRAIN, TRIAL, group
from paribus.runs.store import CURVES, first_manifest, folder_of, lines, records

_STAGES = (PRETRAIN, TRIAL, FINETUNE)


@dataclass(frozen=True)
class Records:
    """Our own records and metrics.jsonl, below these roots."""

    roots: Sequence[Path]

    def runs(self, study: str, scale: str) -> Iterator[Run]:
        for record in records(study, scale, self.roots).records:
            if record["status"] in OVER:
                folder = folder_of(record, self.roots)
                rows = lines(folder / CURVES) if folder else []
                curve = {
                    (name, int(row["step"])): value
                    for row in rows
                    for name, value in numbers(row).items()
                    if name != "step"
                }
                key = record["arm"], record["seed"], record["signature"]
                yield Run(*key, record["status"], _found(record), curve)


def _found(record: Mapping[str, Any]) -> dict[str, float]:
    spent = {f"{BUDGET}{name}": value for name, value in record.get("budget", {}).items()}
    return numbers({**record.get("metrics", {}), **spent}) if record["status"] == "done" else {}


class _Segment(NamedTuple):
    """What one process wrote of a W&B run. `head`: its id, group, job type and start."""

    head: Mapping[str, str]
    told: Told


@dataclass(frozen=True)
class Offline:
    """The W&B files of runs below these roots, read by `wandb leet inspect`; nothing is uploaded."""

    roots: Sequence[Path]

    def runs(self, study: str, scale: str) -> list[Run]:
        """Raises UserError for a file that W&B cannot read."""
        paths = [path for root in self.roots for path in (root / study).glob("*/seed*/wandb/*run-*/run-*.wandb")]
        segments = [_segment(path) for path in sorted(paths)]
        stages: dict[str, Told] = {}
        for head, told in sorted(segments, key=lambda segment: segment.head.get("start_time", "")):
            if head.get("run_group") == group(study, scale) and head.get("job_type") in _STAGES:
                _extend(stages.setdefault(head["run_id"], Told()), told)
        return joined(list(stages.values()), first_manifest(self.roots, study, scale))


def _extend(stage: Told, later: Told) -> None:
    stage.config |= later.config
    stage.summary |= later.summary
    stage.history += later.history


def _segment(path: Path) -> _Segment:
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(path)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode:
        raise UserError(f"{path} cannot be read by W&B", " ".join(found.stderr.split())[-200:] or "remove it")
    head: dict[str, Any] = {}
    told = Told()
    for text in found.stdout.splitlines():
        line = json.loads(text)
        kind, content = line["type"], line.get(line["type"], {})
        if kind == "run":
            head = content
        if kind in ("run", "config"):
            told.config |= (content if kind == "config" else content.get("config", {})).get("update", {})
        elif kind == "summary":
            told.summary |= content.get("update", {})
        elif kind == "history":
            told.history.append(content["item"])
    return _Segment(head, told)


@dataclass(frozen=True)
class Online:
    """A W&B server. The key is taken from where W&B keeps it.

    Args:
        entity: None: the user's own.
        base_url: None: W&B's own server, or WANDB_BASE_URL.
        roots: where a manifest says which runs belong together; without one all of the group do.
    """

    project: str = "paribus"
    entity: str | None = None
    base_url: str | None = None
    roots: Sequence[Path] = ()

    def runs(self, study: str, scale: str) -> list[Run]:
        """Raises UserError where the server cannot be asked."""
        import wandb

        try:
            api = wandb.Api(overrides={"base_url": self.base_url} if self.base_url else {})
            path = f"{self.entity or api.default_entity}/{self.project}"
            found = api.runs(path, filters={"group": group(study, scale)}, per_page=100, lazy=False)
            stages = [self._stage(run) for run in found if run.job_type in _STAGES]
        except Exception as error:  # the client raises many kinds, of its own and of its transport
            raise UserError(
                f"W&B cannot be asked ({' '.join(str(error).split())[:200]})", "check key and network"
            ) from error
        return joined(stages, first_manifest(self.roots, study, scale))

    @staticmethod
    def _stage(run: Any) -> Told:
        return Told(dict(run.config), dict(run.summary_metrics), list(run.scan_history(use_cache=False)))
