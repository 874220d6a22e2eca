"""Components from config: the class named by `_target_`, with one clear line when it cannot be made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paribus.core.errors import Unavailable, UserError


def kind(target: str) -> Any:
    """The class that `_target_` names. Raises UserError if it cannot be imported."""
    from hydra.utils import get_class

    try:
        return get_class(target)
    except Exception as error:  # Hydra wraps whatever the import raised
        raise UserError(f"_target_={target} cannot be imported", "name an importable class") from error


def unavailable(config: Any) -> str | None:
    """Why this machine lacks a component of a composed config, or None: those that have a `require` are asked."""
    try:
        for group in config:
            if group != "hydra":
                _require(config[group])
    except Unavailable as error:
        return str(error)
    return None


def _require(node: Any) -> None:
    if not isinstance(node, Mapping):
        return
    if isinstance(target := node.get("_target_"), str) and hasattr(kind(target), "require"):
        build(node).require()
    for key in node:
        _require(node.get(key))


def build(node: Any, **extra: Any) -> Any:
    """Instantiate a config node as plain settings.

    Raises UserError for settings that the component refuses and for unknown arguments.
    """
    from hydra.errors import InstantiationException
    from hydra.utils import instantiate

    try:
        return instantiate(node, _convert_="all", **extra)
    except InstantiationException as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, UserError):
                raise cause from None
            cause = cause.__cause__ or cause.__context__
        raise UserError(" ".join(str(error).split())[:300]) from error
