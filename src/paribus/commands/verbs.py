"""The verbs of the command, in the order of the help."""

from __future__ import annotations

import importlib

from paribus.core.arguments import Verb
from paribus.core.errors import UserError, suggest

# the object VERB of the module paribus.commands.VERB
VERBS = (
    "init", "train", "show", "plan", "run", "adapt", "status", "table", "flatness", "audit", "report", "dashboard",
    "published", "judge", "compare", "power", "completion",
)  # fmt: skip


def load(name: str) -> Verb:
    """Raises UserError for an unknown verb."""
    if name not in VERBS:
        raise UserError(f"unknown verb '{name}'", suggest(name, VERBS))
    verb: Verb = getattr(importlib.import_module(f"paribus.commands.{name}"), name)
    return verb
