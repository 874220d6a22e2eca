"""Rows of numbers from another framework, and the readers for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paribus.core.errors import UserError

DONE = "done"


@dataclass(frozen=True)
class Row:
    """One run, or a part or a point of one.

    `place`: where it is in the source, such as `line 3`; `name`: of the run, if it has one; `status`: "done", or how it
    ended otherwise.
    """

    place: str
    values: Mapping[str, Any]
    name: str = ""
    status: str = DONE


@dataclass(frozen=True)
class Source:
    """The rows of a file, a folder or a server.

    `higher`: {column: whether more is better}, if the source says so; `parts`: {column: the one whose mean holds it}.
    """

    name: str
    rows: Sequence[Row]
    higher: Mapping[str, bool] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, in the order in which they appear."""
        return tuple(dict.fromkeys(column for row in self.rows for column in row.values))


Reader = Callable[[str], Source]


def open_source(name: str) -> Source:
    """The rows of `wandb:entity/project`, `mlflow:folder`, a file, or a folder of W&B, MLflow or lm-eval.

    Raises UserError for anything else, and if there is no run.
    """
    kind, _, rest = name.partition(":")
    readers = _list_readers()
    read = readers.get(kind) if rest else readers.get(_find_kind(Path(name).expanduser()))
    if read is None:
        mend = "give a CSV or JSONL file, wandb:entity/project, or a folder of W&B, MLflow or lm-eval"
        there = Path(name).expanduser().exists()
        raise UserError(f"{name} {'holds no runs that can be read' if there else 'does not exist'}", mend)
    source = read(rest or name)
    if not source.rows:
        raise UserError(f"{name} holds no run", "give the folder or file with the finished runs")
    return source


def _list_readers() -> dict[str, Reader]:
    from paribus.reporting.foreign import delimited, lm_eval, mlflow, wandb_runs

    return {
        "table": delimited.read,
        "wandb": wandb_runs.read,
        "wandb offline": wandb_runs.read_offline,
        "mlflow": mlflow.read,
        "lm-eval": lm_eval.read,
    }


def _find_kind(path: Path) -> str:
    """The reader that a file or folder needs; empty for none."""
    if path.is_file():
        return {".db": "mlflow", ".wandb": "wandb offline", ".json": "lm-eval"}.get(path.suffix, "table")
    patterns = {"*.wandb": "wandb offline", "results*.json": "lm-eval", "meta.yaml": "mlflow", "mlflow.db": "mlflow"}
    return next((kind for pattern, kind in patterns.items() if any(path.rglob(pattern))), "")


def flatten(nested: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted key, value) of each leaf."""
    for key, value in nested.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def join(settings: Mapping[str, Any], results: Mapping[str, Any]) -> dict[str, Any]:
    """Settings and results of a run; a name that both have becomes `config.NAME` and `summary.NAME`."""
    both = settings.keys() & results.keys()
    return {
        **{f"config.{key}" if key in both else key: value for key, value in settings.items()},
        **{f"summary.{key}" if key in both else key: value for key, value in results.items()},
    }
