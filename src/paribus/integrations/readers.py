"""Which reader the numbers of another framework need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from paribus.core.errors import UserError
from paribus.integrations import delimited, lm_eval, mlflow
from paribus.integrations.source import ForeignSource
from paribus.integrations.wandb import foreign_runs

READERS: dict[str, Callable[[str], ForeignSource]] = {
    "table": delimited.read,
    "wandb": foreign_runs.read,
    "wandb offline": foreign_runs.read_offline,
    "mlflow": mlflow.read,
    "lm-eval": lm_eval.read,
}


def open_source(name: str) -> ForeignSource:
    """The rows of `wandb:entity/project`, `mlflow:folder`, a file, or a folder of W&B, MLflow or lm-eval.

    Raises UserError for anything else, and if there is no run.
    """
    kind, _, rest = name.partition(":")
    path = Path(name).expanduser()
    read = READERS.get(kind if rest else _find_kind(path))
    if read is None:
        mend = "give a CSV or JSONL file, wandb:entity/project, or a folder of W&B, MLflow or lm-eval"
        raise UserError(f"{name} {'holds no runs that can be read' if path.exists() else 'does not exist'}", mend)
    source = read(rest or name)
    if not source.rows:
        raise UserError(f"{name} holds no run", "give the folder or file with the finished runs")
    return source


def _find_kind(path: Path) -> str:
    """The reader that a file or folder needs; empty for none."""
    if path.is_file():
        return {".db": "mlflow", ".wandb": "wandb offline", ".json": "lm-eval"}.get(path.suffix, "table")
    patterns = {"*.wandb": "wandb offline", "results*.json": "lm-eval", "meta.yaml": "mlflow", "mlflow.db": "mlflow"}
    return next((kind for pattern, kind in patterns.items() if any(path.rglob(pattern))), "")
