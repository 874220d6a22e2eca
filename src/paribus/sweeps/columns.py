"""The columns of a sweep: which names are valid, and which tasks fill them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from paribus.core.build import build, require_task
from paribus.core.config_names import choices, conf_dir
from paribus.core.errors import UserError, nearest
from paribus.core.trust import DECLARED, import_declared
from paribus.core.trust import declared as trusted_modules
from paribus.verdict.metrics import LAYER, MEAN, held_out_columns, is_task, whole_columns
from paribus.verdict.metrics.costs import TUNING

if TYPE_CHECKING:
    from paribus.tasks.task import Task

_PAIRS = ("nsp_accuracy", "sop_accuracy", "sentence_accuracy", "nsp_probe_accuracy", "sop_probe_accuracy")
_BESIDE = ("forgetting", "unknown_rate", "unknown_words", *TUNING)  # of a fine-tuning besides those of its task
_OF_MIX = ("centre_of_gravity", "mix_kl")  # of a head with learned weights of layers
_OF_LAYERS = ("accuracy", "control_accuracy", "selectivity", "mix")  # of a probe or such a head, before a layer: _l3
_ALIKE = 0.75  # of `nearest`: an unknown name that is no nearer than this may be the metric of a user's own head
_LAYER = re.compile(r"_layer\d+$")  # behind the name of what is measured of a single layer
_TASK_CHOICE = re.compile(r"\+{0,2}task=")
_TASK_KEY = re.compile(r"\+{0,2}tasks\.([\w-]+)[.=]")


def check_columns(path: Path, columns: Sequence[str], overrides: Iterable[str]) -> None:
    """Raises UserError for a column that no run can have, and for one that is spelled almost as a known one.

    overrides: all of the sweep's; they may declare tasks.
    """
    declared = (match[1] for text in overrides if (match := _TASK_KEY.match(text)))
    tasks = [*choices("task"), *declared]
    import_declared()  # the user's own metrics
    known = [*held_out_columns(), *_PAIRS, MEAN, *whole_columns()]
    for column in columns:
        task = column.rpartition("/")[0]
        if is_task(column) and task not in tasks:
            near = [f"{name}{column[len(task) :]}" for name in nearest(task, tasks)]
            mend = f"did you mean {' or '.join(near)}?" if near else f"write conf/task/{task}.yaml"
            raise UserError(f"{path}: the column '{column}' belongs to no known task", mend)
        if column in tasks:
            scores = list_metrics(node) if (node := _read_packaged(column)) else ["METRIC"]
            raise UserError(f"{path}: the column '{column}' is a task without a metric", f"write {column}/{scores[0]}")
        if is_task(column) or _LAYER.sub("", column) in known:
            continue
        near = [name for name in known if name.endswith(f"_{column}")] or nearest(column, known, _ALIKE)
        if near or not trusted_modules():  # else it may come from the user's own code
            mend = f"did you mean {' or '.join(near)}?" if near else f"known: TASK/METRIC, {', '.join(known)}"
            if trusted_modules():
                kind = f"Metric({column!r}, held_out_loss=True)" if column.endswith("_loss") else f"Metric({column!r})"
                mend += f" If it is your own: METRICS.add({kind}) in a module of {DECLARED}"
            raise UserError(f"{path}: the column '{column}' is unknown", mend)


def follow_columns(columns: Sequence[str], overrides: Iterable[str], tasks: Iterable[str], trial: bool) -> list[str]:
    """The override that chooses the tasks of the columns; none if the overrides choose tasks, or if `tasks`, those of
    the recipe, fill a column and no column belongs to a user's own task.

    A column of the paper's table may belong to a task that is not available.

    trial: whether to choose only the user's own tasks; others may need a download.
    """
    wanted = dict.fromkeys(column.rpartition("/")[0] for column in columns if is_task(column))
    if any(_TASK_CHOICE.match(text) or _TASK_KEY.match(text) for text in overrides):
        return []
    here = [name for name in wanted if name in choices("task")]
    users = [name for name in here if not _packaged(name).is_file()]
    filled = wanted.keys() & set(tasks)
    if filled and not users:
        return []
    chosen = users if trial else [name for name in here if name in (*users, *filled) or not filled]
    return [f"task=[{','.join(chosen)}]"] if chosen else []


def check_filled(path: Path, columns: Sequence[str], tasks: Mapping[str, Mapping[str, Any]], trial: bool) -> None:
    """Raises UserError if no column can be filled, and for a metric that a task does not have, chosen or packaged.

    tasks: {name: its config}. trial: whether a sweep without tasks may run that measures nothing.
    """
    for column in filter(is_task, columns):
        task, _, metric = column.rpartition("/")
        node = tasks[task] if task in tasks else _read_packaged(task)
        if node is None:
            continue
        require_task(f"tasks.{task}", node)
        known = list_metrics(node)
        own = (*known, *_OF_LAYERS) if LAYER.search(metric) else (*known, *_OF_MIX)
        if LAYER.sub("", metric) not in own:
            raise UserError(f"{path}: the task {task} has no metric '{metric}'", f"its metrics: {', '.join(known)}")
    filled = (column.rpartition("/")[0] in tasks if is_task(column) else column != MEAN for column in columns)
    if not any(filled) and (tasks or not trial):
        wanted = ",".join(dict.fromkeys(column.rpartition("/")[0] for column in columns if is_task(column)))
        cause = f"{path}: no column can be filled: its tasks are {', '.join(tasks) or 'none'}"
        raise UserError(cause, f"write base: [task=[{wanted}]], or other columns")


def _packaged(task: str) -> Path:
    return conf_dir() / f"task/{task}.yaml"


def _read_packaged(task: str) -> Mapping[str, Any] | None:
    """The config of a packaged task; None if there is none of that name."""
    import yaml

    path = _packaged(task)
    return cast("Mapping[str, Any]", yaml.safe_load(path.read_text(encoding="utf-8"))) if path.is_file() else None


def list_metrics(node: Mapping[str, Any]) -> list[str]:
    """The metrics of a task by its config, the main one first, with those of further evaluation sets."""
    task: Task = build(node)
    names = list(task.task_type.metrics)
    return [*names, *(f"{name}_{split}" for name in names for split in task.further_sets), *_BESIDE]
