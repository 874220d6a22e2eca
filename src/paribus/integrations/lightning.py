"""Logs of Lightning's CSVLogger: `metrics.csv` of each run below a folder, and `hparams.yaml` beside it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from paribus.core.errors import UserError
from paribus.integrations import delimited
from paribus.integrations.source import ForeignSource, flatten, join

METRICS, SETTINGS = "metrics.csv", "hparams.yaml"
_VERSION = re.compile(r"version_[0-9]+")
_DEFAULT = "lightning_logs"


def read(name: str) -> ForeignSource:
    """The rows of all runs. A run is named by its folder, without `lightning_logs` and a `version_0` that is the only
    one there.

    Raises UserError for settings that are not plain YAML, and as the reader of CSV files.
    """
    folder = Path(name).expanduser()
    paths = {path: path.parent.relative_to(folder) for path in sorted(folder.rglob(METRICS))}
    counts = Counter(_shorten(place) for place in paths.values())
    rows = []
    for path, place in paths.items():
        short, settings = _shorten(place), _read_settings(path.parent / SETTINGS)
        run = short if short and counts[short] == 1 else place.as_posix()
        for row in delimited.read(str(path)).rows:
            where = f"{row.place} of {place / METRICS}"
            values = join(settings, row.values)
            rows.append(replace(row, place=where, values=values, name=run, aliases=(place.as_posix(),)))
    return ForeignSource(folder.resolve().name, rows)


def _shorten(place: Path) -> str:
    parts = [part for part in place.parts if part != _DEFAULT]
    if parts and _VERSION.fullmatch(parts[-1]):
        parts.pop()
    return "/".join(parts)


def _read_settings(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except yaml.YAMLError as error:
        raise UserError(f"{path} holds more than plain settings", "remove it; --name reads arms from paths") from error
    return dict(flatten(content)) if isinstance(content, dict) else {}
