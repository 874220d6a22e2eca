"""Results of lm-evaluation-harness: `results_<time>.json` of each model below a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paribus.core.errors import UserError
from paribus.integrations.source import ForeignRow, ForeignSource, flatten, join


def read(name: str) -> ForeignSource:
    """One row per file: `TASK/METRIC` of each task, and the settings of the evaluation.

    A metric of a filter other than `none` is `TASK/METRIC@FILTER`. Tasks of a group are parts of the group's own score,
    which the harness writes beside them. Raises UserError for a file of another layout.
    """
    given = Path(name).expanduser()
    folder = given.parent if given.is_file() else given
    higher: dict[str, bool] = {}
    groups: dict[str, str] = {}
    rows = []
    for path in [given] if given.is_file() else sorted(folder.rglob("results*.json")):
        content = _load(path)
        for task, metrics in content.get("higher_is_better", {}).items():
            higher |= {f"{task}/{metric}": bool(up) for metric, up in (metrics or {}).items() if up is not None}
        groups |= {task: group for group, tasks in content.get("group_subtasks", {}).items() for task in tasks or ()}
        rows.append(_read_row(str(path.relative_to(folder)), content))
    known = {column for row in rows for column in row.values}
    filtered = {column: higher[plain] for column in known if (plain := column.partition("@")[0]) in higher}
    parts = {}  # {column of a task: that of its group, if the group has a score}
    for column in known:
        task, _, metric = column.partition("/")
        if task in groups and (whole := f"{groups[task]}/{metric}") in known:
            parts[column] = whole
    return ForeignSource(folder.resolve().name, rows, filtered, parts)


def _load(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(content["results"], dict):
            return dict(content)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise UserError(f"{path} holds no results of lm-eval", "remove it, or give the folder of the results alone")


def _read_row(place: str, content: Mapping[str, Any]) -> ForeignRow:
    scores = {}
    for task, metrics in content["results"].items():
        for key, value in metrics.items():
            metric, comma, kind = key.partition(",")
            if comma and "_stderr" not in key:
                scores[f"{task}/{metric}" if kind == "none" else f"{task}/{metric}@{kind}"] = value
    settings = {**dict(flatten(content.get("config", {}))), "model_name": content.get("model_name", "")}
    return ForeignRow(place, join(settings, scores), str(content.get("model_name") or Path(place).parent.name))
