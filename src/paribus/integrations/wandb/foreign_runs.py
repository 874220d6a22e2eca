"""Any project's runs in W&B: from a server, or from the files of offline runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paribus.core.errors import UserError
from paribus.integrations.source import DONE, ForeignRow, ForeignSource, flatten, join
from paribus.integrations.wandb.sources import Segment, read_segment


def read(name: str) -> ForeignSource:
    """The runs of `entity/project` on a server. Raises UserError if the server cannot be reached."""
    import wandb

    try:
        runs = list(wandb.Api().runs(name, per_page=100, lazy=False))
        rows = [_make_row(run.id, run.name, run.state, dict(run.config), dict(run.summary_metrics)) for run in runs]
    except Exception as error:  # the client and its transport raise many kinds
        raise UserError(
            f"W&B cannot load {name} ({' '.join(str(error).split())[:200]})", "check your key and the network"
        ) from error
    return ForeignSource(name.rpartition("/")[2], rows, whole=True)


def read_offline(name: str) -> ForeignSource:
    """The offline runs below a folder; the parts of a run that was resumed count as one.

    Raises UserError for a file that W&B cannot read.
    """
    folder = Path(name).expanduser()
    paths = sorted(folder.rglob("*.wandb")) if folder.is_dir() else [folder]
    segments = sorted(map(read_segment, paths), key=lambda segment: segment.head.get("start_time", ""))
    runs: dict[str, list[Segment]] = {}
    for segment in segments:
        if "run_id" in segment.head:
            runs.setdefault(segment.head["run_id"], []).append(segment)
    rows = []
    for run, parts in runs.items():
        settings: dict[str, Any] = {}
        results: dict[str, Any] = {}
        for part in parts:
            settings |= part.log.config
            results |= part.log.summary
        last = parts[-1]
        state = "finished" if last.exit == 0 else "running or killed" if last.exit is None else "failed"
        rows.append(_make_row(run, last.head.get("display_name", ""), state, settings, results))
    return ForeignSource(folder.resolve().name, rows, whole=True)


def _make_row(run: str, name: str, state: str, settings: Mapping[str, Any], results: Mapping[str, Any]) -> ForeignRow:
    inputs, outputs = (
        {key: value for key, value in flatten(part) if not key.startswith("_")} for part in (settings, results)
    )
    status = DONE if state == "finished" else f"its state in W&B is {state}"
    return ForeignRow(f"run {run}", join(inputs, outputs), name, status)
