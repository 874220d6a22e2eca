"""The form in which a model does a task."""

from __future__ import annotations

from typing import Any

from ceteris.errors import UserError
from ceteris.forms.form import Form
from ceteris.tasks.task import Task


def form_of(task: Task, model: Any) -> Form:
    """The task's own form, read by a head; `model` is the model's spec.

    Raises UserError for a model that writes.
    """
    if hasattr(model, "layout"):
        raise UserError(
            f"tasks.{task.name} has a head on an encoder, but the model writes text", "take model=bert_tiny"
        )
    return task.form
