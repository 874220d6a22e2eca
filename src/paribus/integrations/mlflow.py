"""MLflow's tracking stores on this machine: the folder `mlruns`, and a SQLite file."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from paribus.core.errors import UserError
from paribus.integrations.source import DONE, ForeignRow, ForeignSource, join

_STATUSES = {"1": "RUNNING", "2": "SCHEDULED", "3": "FINISHED", "4": "FAILED", "5": "KILLED"}
_FINISHED = "FINISHED"


def read(name: str) -> ForeignSource:
    """The runs of all experiments that were not deleted, each with its parameters and the last value of its metrics.

    Raises UserError if there is no store.
    """
    path = Path(name).expanduser()
    database = path if path.is_file() else path / "mlflow.db"
    if not database.is_file() and not path.is_dir():
        raise UserError(f"{name} is not an MLflow store", "give mlruns or mlflow.db; a server's runs can be exported")
    rows = _read_database(database) if database.is_file() else _read_folder(path)
    study = "mlflow" if path.stem in ("mlruns", "mlflow") else path.stem
    return ForeignSource(study, list(rows), whole=True)


def _describe(status: object) -> str:
    word = _STATUSES.get(str(status), str(status))
    return DONE if word == _FINISHED else f"its status in MLflow is {word}"


def _read_folder(root: Path) -> Iterator[ForeignRow]:
    import yaml

    for path in sorted(root.rglob("meta.yaml")):
        about = yaml.safe_load(path.read_text(encoding="utf-8"))
        run = (about or {}).get("run_id")
        if run is None or about.get("lifecycle_stage") == "deleted" or ".trash" in path.parts:
            continue
        folder = path.parent
        settings = {**_read_values(folder / "tags"), **_read_values(folder / "params")}
        metrics = {}
        for key, text in _read_values(folder / "metrics").items():
            points = [line.split() for line in text.splitlines() if line.strip()]  # `time value step` in each line
            metrics[key] = max((int(step), int(time), float(value)) for time, value, step, *_ in points)[-1]
        name = str(about.get("run_name") or settings.get("mlflow.runName", ""))
        yield ForeignRow(f"run {run}", join(_drop_internal(settings), metrics), name, _describe(about.get("status")))


def _read_values(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in files}


def _drop_internal(settings: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in settings.items() if not key.startswith("mlflow.")}


def _read_database(path: Path) -> Iterator[ForeignRow]:
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as store:
            runs = store.execute("SELECT run_uuid, name, status FROM runs WHERE lifecycle_stage = 'active'").fetchall()
            tags, parameters, metrics = (_read_rows(store, name) for name in ("tags", "params", "latest_metrics"))
    except sqlite3.Error as error:
        raise UserError(f"{path} is not an MLflow store", str(error)) from error
    for run, name, status in sorted(runs):
        settings = _drop_internal({**tags[run], **parameters[run]})
        yield ForeignRow(f"run {run}", join(settings, metrics[run]), str(name or ""), _describe(status))


def _read_rows(store: sqlite3.Connection, table: str) -> dict[str, dict[str, Any]]:
    """{run: {key: value}} of a table."""
    runs: dict[str, dict[str, Any]] = defaultdict(dict)
    for run, key, value in store.execute(f"SELECT run_uuid, key, value FROM {table}"):
        runs[run][key] = value
    return runs
