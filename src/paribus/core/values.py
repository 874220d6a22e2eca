"""Types and bounds of a run's settings, checked on the whole resolved config before anything is computed.

The types are the annotations of the component that a node names; Hydra checks those of the plain groups
(`core.settings`). A number is finite and within the bounds of its setting, which stand beside it
(`core.settings.within`); without such bounds, it is not negative outside the user's own components.
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
from paribus.core.settings import GROUPS, HIGHEST, LARGEST, TOP_BOUNDS, bounds_of
from paribus.core.trust import KNOWN, is_trusted

COMPONENTS = {  # settings that are components, although their groups leave the type open; False if null will do
    **dict.fromkeys(
        ("corpus", "tokenizer", "input", "masking", "objective", "model", "optimizer", "lr_schedule"), True
    ),
    **dict.fromkeys(("logger", "evaluation.input"), True),
    **dict.fromkeys(("evaluation.masking", "evaluation.inputs", "evaluation.targets", "mixture"), False),
    **dict.fromkeys(("finetune.joint", "finetune.probe"), False),
    **dict.fromkeys(("objective.view", "objective.shuffling"), False),
    **dict.fromkeys(("finetune.method", "finetune.head", "finetune.optimizer", "finetune.lr_schedule"), True),
}
_TEXTS = ("sweep", "sweep_hash", "run_dir", "paths.runs", "paths.cache")  # those that may not be empty
_TRIAL = {"storage", "study", "id", "metric"}
_TASK = re.compile(r"finetune\.each\.[^.]+$")  # settings of a single task
_OPEN = ("Any", "Path")  # annotations that say nothing about the value
_LIST = re.compile(r"\b(?:list|Sequence)\[([\w |]+)\]")
_TYPES: dict[str, tuple[Any, str]] = {  # an annotation: (what it takes, how a message calls it)
    "bool": (bool, "true or false"),
    "int": (int, "a whole number"),
    "float": ((int, float), "a number"),
    "str": (str, "a text"),
    "None": (type(None), "null"),
}


def check_top(config: Mapping[str, Any]) -> None:
    """Check the keys at the top of a resolved config whose values Hydra takes as they come.

    Raises UserError naming the first one whose value has the wrong type or is an empty text.
    """
    paths = config.get("paths")
    given = {
        **config,
        **({f"paths.{key}": value for key, value in paths.items()} if isinstance(paths, Mapping) else {}),
    }
    if empty := next((key for key in _TEXTS if given.get(key) == ""), None):
        raise UserError(f"{empty} is empty", f"write {empty}=VALUE or leave it out")
    trial = config.get("trial")
    if trial is not None and not (isinstance(trial, Mapping) and trial.keys() == _TRIAL):
        raise UserError(f"trial={str(trial)[:60]} is no trial of a search", "leave it out; a search sets it")
    seeds = config.get("table_seeds", [])
    if not isinstance(seeds, list) or not all(type(seed) is int and seed >= 0 for seed in seeds):
        raise UserError(f"table_seeds={str(seeds)[:60]} is not a list of seeds", "write table_seeds=[0,1,2]")
    tokens = config.get("exit_tokens", {})
    if not isinstance(tokens, Mapping) or not all(type(count) in (int, float) for count in tokens.values()):
        mend = "write {POSITIONS: TOKENS}, such as {learned: 2.6e+6}"
        raise UserError(f"exit_tokens={str(tokens)[:60]} does not give numbers of tokens", mend)


def check_values(node: object, key: str = "", known: bool = True) -> None:
    """Check a resolved config, or the part of it at `key`. `known`: whether it belongs to a component that is not the
    user's own.

    Raises UserError naming the first key whose value has the wrong type or is out of bounds.
    """
    if isinstance(node, Mapping):
        known = is_trusted(str(node["_target_"]), KNOWN) if "_target_" in node else known
        target = node.get("_target_")
        component = kind(target) if isinstance(target, str) else GROUPS.get(_TASK.sub("finetune", key))
        types = _annotations(component)
        ranges = bounds_of(component) if is_dataclass(component) else {} if key else TOP_BOUNDS
        for name, value in node.items():
            path = f"{key}.{name}" if key else str(name)
            _check_type(path, value, types.get(str(name), ""))
            _check_component(path, value)
            if isinstance(value, Mapping):
                check_values(value, path, known)
            else:
                _check_numbers(path, value, known, ranges.get(str(name)))
    else:
        _check_numbers(key, node, known, None)


def check_types(component: Mapping[str, Any], key: str) -> None:
    """Check the settings of another library's component, at `key`, against its annotations; the bounds are its own.

    Raises UserError naming the first setting whose value has the wrong type.
    """
    types = _annotations(kind(component["_target_"]))
    for name, value in component.items():
        _check_type(f"{key}.{name}", value, types.get(name, ""))


def _check_numbers(key: str, value: object, known: bool, bounds: tuple[float, float] | None) -> None:
    """Check a value, or those of a list."""
    if isinstance(value, list):
        for one in value:
            if isinstance(one, Mapping):
                check_values(one, key, known)
            else:
                _check_numbers(key, one, known, bounds)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _check_bounds(key, value, known, bounds)


def _annotations(component: Any) -> dict[str, str]:
    """{setting: its annotation}.

    Hydra has checked the types of plain groups, but not those of what an interpolation gave.
    """
    if component is None:
        return {}
    if is_dataclass(component):
        return {each.name: inspect.formatannotation(each.type).strip("'") for each in fields(component)}
    return {each.name: inspect.formatannotation(each.annotation).strip("'") for each in parameters(component)}


def _check_type(key: str, value: object, annotation: str) -> None:
    """Whether a value is of the type that its setting is annotated with."""
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
        if "str" in allowed:  # nan, 1e3 and true are texts only in quotes
            wanted += f", or '{key}=\"{shown}\"' for this text"
        raise UserError(f"{key}={shown} has the wrong type", f"give {wanted}")


def _check_component(key: str, value: object) -> None:
    """Whether a setting that must be a component is one."""
    if key.startswith("tasks.") and key.count(".") == 1:
        require_task(key, value)
    if (needed := COMPONENTS.get(key)) is None or (value in (None, {}) and not needed):
        return
    if not isinstance(value, Mapping) or "_target_" not in value:
        raise UserError(f"{key}={str(value)[:60]} is not a component", f"give a choice of {key.replace('.', '/')}=")


def _check_bounds(key: str, value: float, known: bool, bounds: tuple[float, float] | None) -> None:
    """Whether a number is finite and within the bounds of its setting, or within the usual ones."""
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
