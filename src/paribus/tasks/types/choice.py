"""The form in which a model does a task."""

from __future__ import annotations

from typing import Any

from paribus.core.errors import UserError
from paribus.tasks.task import Task
from paribus.tasks.types.base import TaskType
from paribus.tasks.types.text import TextTaskType


def task_type_of(task: Task, model: Any) -> TaskType:
    """The task's own form, read by a head, or where the model writes the form in words; `model` is the model's spec.

    Raises UserError where the task has no form that the model can do.
    """
    if model.writes_text:
        return task.task_type.written(task.fields, model.single)
    if isinstance(task.task_type, TextTaskType):
        raise UserError(f"tasks.{task.name} is to be written, but the model is an encoder", "take model=t5_tiny")
    return task.task_type
