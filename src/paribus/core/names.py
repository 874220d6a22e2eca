"""Names of studies, arms, scales, stages and tasks, which become names of folders and files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from paribus.core.errors import UserError

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")
NAMING = "use at most 100 letters of ASCII, digits and _ . + -, and no dot first"


def is_name(text: object) -> bool:
    """Whether it names a folder inside another one: not `..`, no slash, not empty."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def read_name(text: str) -> str:
    """Raises ValueError for a text that cannot be a name."""
    if not is_name(text):
        raise ValueError(NAMING)
    return text


def at_scale(scale: str) -> str:
    """Such as " at cpu scale"; nothing for runs of another framework, which have no scale."""
    return f" at {scale} scale" if scale else ""


def check_names(config: Mapping[str, Any]) -> None:
    """Raises UserError if a resolved config of a run has a name that would leave the folder of the runs."""
    given = [(key, str(config[key])) for key in ("study", "arm", "scale") if config.get(key) is not None]
    for key in ("stages", "tasks"):
        if not isinstance(config.get(key), Mapping):
            raise UserError(f"{key}={config.get(key)} is not a mapping", "write NAME: SETTINGS below it")
        given += [(key, str(name)) for name in config[key]]
    for key, name in given:
        if not is_name(name):
            raise UserError(f"{key}={name!r} cannot name a folder", NAMING)
