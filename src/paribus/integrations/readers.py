"""Which reader the numbers of another framework need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from paribus.core.errors import UserError
from paribus.integrations import delimited, lightning, lm_eval, mlflow
from paribus.integrations.source import ForeignSource
from paribus.integrations.text_files import find_suffix, read_text
from paribus.integrations.wandb import foreign_runs

READERS: dict[str, Callable[[str], ForeignSource]] = {
    "table": delimited.read,
    "wandb": foreign_runs.read,
    "wandb offline": foreign_runs.read_offline,
    "mlflow": mlflow.read,
    "lm-eval": lm_eval.read,
    "lm-eval samples": lm_eval.average_samples,
    "lightning": lightning.read,
}
_ENDINGS = {".db": "mlflow", ".wandb": "wandb offline"}
_IN_FOLDERS = {  # the first that a folder holds counts
    "*.wandb": "wandb offline",
    "results*.json": "lm-eval",
    lm_eval.SAMPLES: "lm-eval samples",
    "meta.yaml": "mlflow",
    "mlflow.db": "mlflow",
    lightning.METRICS: "lightning",
}


def open_source(name: str) -> ForeignSource:
    """The rows of `wandb:entity/project`, `mlflow:folder`, a file, or a folder of W&B, MLflow, Lightning or lm-eval.

    Raises UserError for anything else, and if there is no run.
    """
    kind, _, rest = name.partition(":")
    path = Path(name).expanduser()
    read = READERS.get(kind if rest else _find_kind(path))
    if read is None:
        mend = "give a CSV, JSON or JSONL file, wandb:entity/project, or a folder of W&B, MLflow, Lightning or lm-eval"
        raise UserError(f"{name} {'holds no runs that can be read' if path.exists() else 'does not exist'}", mend)
    source = read(rest or name)
    if not source.rows:
        raise UserError(f"{name} holds no run", "give the folder or file with the finished runs")
    return source


def _find_kind(path: Path) -> str:
    """The reader that a file or folder needs; empty for none."""
    if path.is_file():
        if find_suffix(path) == ".json":
            return "lm-eval" if '"results"' in read_text(path) else "table"
        return _ENDINGS.get(path.suffix, "table")
    found = next((kind for pattern, kind in _IN_FOLDERS.items() if any(path.rglob(pattern))), "")
    return found or ("lm-eval" if path.is_dir() and lm_eval.list_results(path) else "")
