"""Components from config: the class named by `_target_`, with a one-line error if it cannot be built."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from inspect import Parameter, signature
from pydoc import ErrorDuringImport, locate
from typing import Any

from paribus.core.config import plain
from paribus.core.errors import Unavailable, UserError, suggest
from paribus.core.moved import find_moved, update_targets
from paribus.core.trust import check_class, check_name, check_tree, leaves

_WRONG = re.compile(  # what Hydra says of an argument that a class does not have, or lacks
    r"call to target '(?P<target>[\w.]+)'.* (?P<what>unexpected keyword|missing .* positional) arguments?:? "
    r"'(?P<key>\w+)'(.*full_key: (?P<place>[\w.]+))?"
)


def kind(target: str) -> Any:
    """The class that `_target_` names. Raises UserError if it is not trusted or cannot be imported."""
    target = find_moved(target)
    check_name(target)
    try:
        component = locate(target)
    except ErrorDuringImport as error:
        raise UserError(f"_target_={target} cannot be imported ({error.value})", "fix its module") from error
    if not isinstance(component, type):
        raise UserError(f"_target_={target} cannot be imported", "name an importable class")
    check_class(component, target)
    return component


def public_name(component: type) -> str:
    """The name under which a component counts, wherever its module lies."""
    if named := vars(component).get("public_name"):
        return str(named)
    ours = component.__module__.partition(".")[0] == __name__.partition(".")[0]
    return component.__qualname__ if ours else f"{component.__module__}.{component.__qualname__}"


def parameters(component: type) -> list[Parameter]:
    """The parameters of a class, with the keyword-only ones of its bases in place of its `**`."""
    stated = list(signature(component).parameters.values())
    named = [each for each in stated if each.kind is not Parameter.VAR_KEYWORD]
    for base in component.__bases__ if len(named) < len(stated) else ():
        with suppress(ValueError):  # a class in C may have no signature
            named += [each for each in parameters(base) if each.kind is Parameter.KEYWORD_ONLY]
    return named


def require_task(place: str, node: object) -> None:
    """Raises UserError if the config of a task, which is at this place, names no class."""
    if not isinstance(node, Mapping) or "_target_" not in node:
        raise UserError(
            f"{place} names no _target_", "write a class, such as `_target_: paribus.tasks.tables.table.LabelTable`"
        )


def unavailable(config: Any) -> str | None:
    """Why this machine lacks a component of a composed config, or None; asks the components that have `require`."""
    try:
        for group in config:
            if group != "hydra":
                _require(config[group])
    except Unavailable as error:
        return str(error)
    return None


def _require(node: object) -> None:
    if not isinstance(node, Mapping):
        return
    if isinstance(target := node.get("_target_"), str):
        ask(kind(target), node, "require")
    for key in node:
        _require(node.get(key))


def ask(component: type, node: Mapping[str, Any], method: str) -> Any:
    """What the method of a component says; one without such a method is not built, and says None."""
    return getattr(build(node), method)() if hasattr(component, method) else None


def build(node: Mapping[str, Any]) -> Any:
    """Instantiate a config node as plain settings.

    Raises UserError for settings that the component refuses, for unknown arguments, and for classes that are not
    trusted; the whole node is checked for those before anything is imported.
    """
    from hydra.errors import InstantiationException
    from hydra.utils import instantiate

    node = {**_check(node), "_convert_": "all"}  # given as an argument, Hydra would merge it into one more copy
    try:
        return instantiate(node)
    except InstantiationException as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, UserError):
                raise cause from None
            cause = cause.__cause__ or cause.__context__
        raise _explain(" ".join(str(error).split())) from error


def _explain(said: str) -> UserError:
    """The UserError for Hydra's error: the key that a component does not have, or lacks, or Hydra's own message."""
    wrong = _WRONG.search(said)
    if wrong is None:
        return UserError(said[:300])
    place = f"{wrong['place']}." if wrong["place"] else ""
    if wrong["what"].startswith("missing"):
        key = place + wrong["key"]
        return UserError(f"{key} is missing", f"add '{wrong['key']}:' to its file, or write +{key}=VALUE")
    known = [each.name for each in parameters(kind(wrong["target"]))]
    return UserError(f"unknown key '{place}{wrong['key']}'", suggest(wrong["key"], known))


def _check(node: Any) -> dict[str, Any]:
    """A config node as plain data, if all of its classes are trusted."""
    from omegaconf import OmegaConf

    if not _is_plain(node):
        node = plain(node if OmegaConf.is_config(node) else OmegaConf.create(node, flags={"allow_objects": True}))
    node = update_targets(node)
    check_tree(node)
    for key, value in leaves(node):
        if key == "_target_":
            kind(value)
        elif isinstance(value, str) and "${" in value:  # Hydra would resolve it again, after the check
            raise UserError(f"{key}={value} has an interpolation in its value", "write the value itself")
    checked: dict[str, Any] = node
    return checked


def _is_plain(node: object) -> bool:
    """Whether OmegaConf would return this unchanged."""
    if type(node) is dict:
        return all(type(key) is str and _is_plain(value) for key, value in node.items())
    if type(node) is list:
        return all(map(_is_plain, node))
    return (
        node is None or type(node) in (bool, int, float) or (type(node) is str and "${" not in node and node != "???")
    )
