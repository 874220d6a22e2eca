"""Types and bounds of a run's settings, checked on the whole resolved config before anything is computed.

The types are the annotations of the component that a node names; Hydra checks those of the plain groups
(`core.settings`). A number is finite; outside the user's own components it is also not negative, and inside the
bounds of its key.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from paribus.core.build import kind, parameters, require_task
from paribus.core.errors import UserError
from paribus.core.settings import GROUPS
from paribus.core.trust import KNOWN, is_trusted

LARGEST = 10**15  # of whole numbers
HIGHEST = 3e38  # of others: what 32 bits hold
BOUNDS: dict[str, tuple[float, float]] = {  # (least, most) by a key, or by the last part of keys
    "length": (1, 10**6),
    "target_length": (1, 10**6),
    "positions": (1, 10**6),
    "hidden": (1, 10**5),
    "embedding": (1, 10**5),
    "intermediate": (1, 10**6),
    "model.layers": (1, 10**3),
    "model.heads": (1, 10**4),
    "layers": (0, 10**3),
    "heads": (0, 10**4),
    "vocab_size": (1, 10**8),
    "size": (1, 10**9),
    "batch_size": (1, 10**9),
    "microbatch": (1, 10**9),
    "max_epochs": (0, 10**6),
    "epochs": (0, 10**6),
    "max_steps": (0, 10**10),
    "max_predictions": (0, 10**18),
    "max_flops": (0, 1e30),
    "members": (0, 10**4),
    "ensemble": (0, 10**4),
    "copies": (0, 10**6),
    "points": (0, 10**6),
    "log_every": (1, 10**10),
    "noise_every": (1, 10**10),
    "checkpoint_steps": (1, 10**10),
    "workers": (0, 10**4),
    "threads": (1, 10**5),
    "ranks": (1, 10**5),
    "masking.rate": (0, 1),
    "dropout": (0, 1),
    "attention_dropout": (0, 1),
    "label_smoothing": (0, 1),
    "evaluation.examples": (1, 10**9),
    "own_examples": (1, 10**9),
    "read": (-1000, 1000),  # layers, counted from either end
    "least": (-HIGHEST, HIGHEST),  # of labels that are numbers
    "most": (-HIGHEST, HIGHEST),
}
COMPONENTS = {  # settings that are components, although their groups leave the type open; False if null will do
    **dict.fromkeys(
        ("corpus", "tokenizer", "input", "masking", "objective", "model", "optimizer", "lr_schedule"), True
    ),
    **dict.fromkeys(("logger", "evaluation.input"), True),
    **dict.fromkeys(
        ("evaluation.masking", "evaluation.inputs", "evaluation.targets", "mixture", "finetune.joint"), False
    ),
    **dict.fromkeys(("objective.view", "objective.shuffling"), False),
    **dict.fromkeys(("finetune.method", "finetune.head", "finetune.optimizer", "finetune.lr_schedule"), True),
}
_OPEN = ("Any", "Path")  # annotations that say nothing about the value
_LIST = re.compile(r"\b(?:list|Sequence)\[([\w |]+)\]")
_TYPES: dict[str, tuple[Any, str]] = {  # an annotation: (what it takes, how a message calls it)
    "bool": (bool, "true or false"),
    "int": (int, "a whole number"),
    "float": ((int, float), "a number"),
    "str": (str, "a text"),
    "None": (type(None), "null"),
}


def check_values(node: object, key: str = "", known: bool = True) -> None:
    """Check a resolved config, or the part of it at `key`. `known`: whether it belongs to a component that is not the
    user's own.

    Raises UserError naming the first key whose value has the wrong type or is out of bounds.
    """
    if isinstance(node, Mapping):
        known = is_trusted(str(node["_target_"]), KNOWN) if "_target_" in node else known
        types = _annotations(node, key)
        for name, value in node.items():
            own = f"{key}.{name}" if key else str(name)
            _check_type(own, value, types.get(str(name), ""))
            _check_component(own, value)
            check_values(value, own, known)
    elif isinstance(node, list):
        for value in node:
            check_values(value, key, known)
    elif isinstance(node, int | float) and not isinstance(node, bool):
        _check_bounds(key, node, known)


def _annotations(node: Mapping[str, Any], key: str) -> dict[str, str]:
    """{setting: its annotation} of the component that a node names, or of a plain group.

    Hydra has checked the types of plain groups, but not those of what an interpolation gave.
    """
    target = node.get("_target_")
    component = kind(target) if isinstance(target, str) else GROUPS.get(key)
    if component is None:
        return {}
    if is_dataclass(component):
        return {each.name: inspect.formatannotation(each.type).strip("'") for each in fields(component)}
    return {each.name: inspect.formatannotation(each.annotation).strip("'") for each in parameters(component)}


def _check_type(key: str, value: object, annotation: str) -> None:
    if listed := _LIST.search(annotation):
        if isinstance(value, list):
            for one in value:
                _check_type(key, one, listed[1])
            return
        others = {part.strip() for part in annotation.replace(listed[0], "").split("|")}
        if isinstance(value, str | int | float) and others <= {"", "None"}:
            raise UserError(f"{key}={str(value)[:60]} is not a list", f"give {key}=[{str(value)[:60]}]")
    allowed = [part.strip() for part in annotation.split("|")]
    if not set(allowed) <= _TYPES.keys():
        plain = isinstance(value, str | int | float) or (isinstance(value, Mapping) and "_target_" not in value)
        if plain and all(part.isidentifier() and part not in _OPEN for part in allowed):
            raise UserError(f"{key}={str(value)[:60]} has the wrong type", "give a choice of its group")
        return
    fits = any(isinstance(value, _TYPES[part][0]) for part in allowed)
    if not fits or (isinstance(value, bool) and "bool" not in allowed):
        wanted = " or ".join(_TYPES[part][1] for part in allowed)
        wanted = wanted.replace("a text", "a path") if key.endswith(".path") else wanted
        shown = "null" if value is None else str(value)[:60]
        raise UserError(f"{key}={shown} has the wrong type", f"give {wanted}")


def _check_component(key: str, value: object) -> None:
    if key.startswith("tasks.") and key.count(".") == 1:
        require_task(key, value)
    if (needed := COMPONENTS.get(key)) is None or (value in (None, {}) and not needed):
        return
    if not isinstance(value, Mapping) or "_target_" not in value:
        raise UserError(f"{key}={str(value)[:60]} is not a component", f"give a choice of {key.replace('.', '/')}=")


def _check_bounds(key: str, value: float, known: bool) -> None:
    bounds = (BOUNDS.get(key) or BOUNDS.get(key.rpartition(".")[2])) if known else None
    largest = LARGEST if isinstance(value, int) else HIGHEST
    least, most = bounds or (0 if known else -largest, largest)
    if math.isfinite(value) and least <= value <= most:
        return
    shown = f"{key}={str(value)[:60]}"
    if bounds:
        raise UserError(f"{shown} is out of bounds", f"give a number from {least} to {most}")
    if not math.isfinite(value):
        raise UserError(f"{shown} is not finite", "give a finite number")
    if value > most:
        raise UserError(f"{shown} is too large", "give a smaller one")
    raise UserError(f"{shown} is out of bounds", "give a number from 0 up" if known else "give a larger one")
