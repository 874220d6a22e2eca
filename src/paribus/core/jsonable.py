"""Frozen dataclasses as JSON and back.

A field's metadata says how it is written: `OMITTED` leaves it out at its default, `EMPTY` writes None as `{}`, and
`REST` collects the keys that the class does not know.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

OMITTED: Final = {"omitted": True}
EMPTY: Final = {"empty": True}
REST: Final = {"rest": True}


def to_json(value: object) -> Any:
    """Plain data of dataclasses, mappings and sequences of plain data."""
    if is_dataclass(value) and not isinstance(value, type):
        written: dict[str, Any] = {}
        for field in fields(value):
            part = getattr(value, field.name)
            if "rest" in field.metadata:
                written |= to_json(part)
            elif "empty" in field.metadata and part is None:
                written[field.name] = {}
            elif "omitted" not in field.metadata or part != _default(field):
                written[field.name] = to_json(part)
        return written
    if isinstance(value, Mapping):
        return {key: to_json(inner) for key, inner in value.items()}
    return [to_json(inner) for inner in value] if isinstance(value, list | tuple) else value


def _default(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def from_json(kind: type[T], data: Mapping[str, Any]) -> T:
    """An instance of a dataclass from plain data.

    A missing key takes the field's default. An unknown key is dropped, or kept in the field marked `REST`.
    Raises TypeError if a field without a default is missing.
    """
    values: dict[str, Any] = {}
    hints: dict[str, Any] = _hints(kind)  # type: ignore[arg-type]
    for field in fields(kind):  # type: ignore[arg-type]
        if "rest" in field.metadata:
            values[field.name] = {key: value for key, value in data.items() if key not in hints}
        elif field.name in data:
            empty = "empty" in field.metadata and data[field.name] == {}
            values[field.name] = None if empty else _read(hints[field.name], data[field.name])
    return kind(**values)


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)


def _read(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _read(next(choice for choice in arguments if _fits(choice, value)), value)
    if is_dataclass(hint) and isinstance(hint, type):
        return from_json(hint, value)
    if origin is tuple:
        kinds = [arguments[0]] * len(value) if arguments[-1] is Ellipsis else arguments
        return tuple(_read(kind, inner) for kind, inner in zip(kinds, value, strict=True))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: _read(arguments[1], inner) for key, inner in value.items()}
    return value


def _fits(hint: object, value: object) -> bool:
    """Whether a value may be of a member of a union; of several dataclasses, the first one that lacks no key."""
    if not is_dataclass(hint):
        return hint is not type(None)
    needed = {field.name for field in fields(hint) if field.default is field.default_factory is MISSING}
    return isinstance(value, Mapping) and needed <= value.keys()
