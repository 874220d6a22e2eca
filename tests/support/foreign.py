"""Files of other frameworks, and what is collected from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paribus.integrations.foreign_records import ForeignRuns, JudgeOptions, collect_runs
from paribus.integrations.readers import open_source


def write(path: Path, text: str | bytes) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    return str(path)


def collect(name: str | Path, **options: Any) -> ForeignRuns:
    asked = JudgeOptions(**{"metrics": ("acc",), "baseline": "base", **options})
    return collect_runs(open_source(str(name)), asked, "study")


def list_values(runs: ForeignRuns, column: str = "acc") -> list[tuple[str, int, float | None]]:
    """(arm, seed, value) of each run; None for a run without the column."""
    return [(run.arm, run.seed, run.metrics.get(column)) for run in runs.records]
